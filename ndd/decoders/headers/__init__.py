"""Headers of picture formats, one file each, and of `.npy`: read number by number before a library sees a byte.

nvImageCodec's own parsers crash on some headers. Out of 40,000 mutated files, JPEG 2000 killed the process 67 times (a division
by a subsampling of 0) and PNM 15 times. A `read_header` gives None for a header that it does not understand; it may raise
`struct.error`, `IndexError` or `OverflowError` where the file ends too early.
"""
