"""PNG on the CPU, a batch at once: headers read and pixels decoded with no step of Python for each picture.

`backend.py` is the entrance, `libdeflate.py` and `libpng.py` find the libraries, `kernels.py` calls them, `rows.py` makes pixels
of what libdeflate gives. `headers/png.py` reads one file in Python.
"""
