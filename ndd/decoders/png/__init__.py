"""PNG on the CPU, a batch at once: headers read and pixels decoded with no step of Python for each picture.

`backend.py` is the entrance, `libpng.py` finds the library, `kernels.py` calls it. `formats/png.py` reads one file in Python.
"""
