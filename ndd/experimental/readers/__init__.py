"""Readers that DALI has under `experimental`; `help(ndd.readers)` says what all readers share."""

from ndd.readers.fits import Fits
from ndd.readers.video_sequences import Video

__all__ = ["Fits", "Video"]
