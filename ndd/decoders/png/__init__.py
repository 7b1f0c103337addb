"""PNG on the CPU for a whole batch: headers are read and pixels decoded without Python for each picture.

`backend.py` is the entry point, `libdeflate.py` and `libpng.py` find the libraries, `kernels.py` calls them, and `rows.py`
computes pixels from inflated bytes. `headers/png.py` reads one file in Python.
"""
