"""Readers that DALI has under `experimental`; `help(ndd.readers)` says what all readers share."""

from ndd.readers.fits import Fits

__all__ = ["Fits"]
