"""JPEG on the CPU: segments and headers, and decoders of baseline and progressive pictures and windows of them.

`backend.py` is the entrance. `header.py` and `segments.py` read one file in Python, `batch_headers.py` the headers of a batch.
`baseline.py` decodes, with `huffman.py` for the entropy codes and `ndd/_compiled/simd_jpeg.py` for transforms and colours;
`progressive.py` reads the scans of a progressive picture, whose pixels `baseline.py` makes.
"""
