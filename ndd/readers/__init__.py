"""Readers: an index, a store of records and a sampler. `Reader` and `RecordStore` are the base for new ones."""

from ndd.readers.base import Reader
from ndd.readers.epoch import Epoch
from ndd.readers.file import File
from ndd.readers.records import RecordStore
from ndd.readers.state import ReaderState

__all__ = ["Epoch", "File", "Reader", "ReaderState", "RecordStore"]
