"""nvImageCodec: a backend for JPEGs on the CPU, and one for batches on a GPU.

`python_api.py` is the wheel's Python module, with the backend for one picture on the CPU. `c_api.py` is the C library, `calls.py`
its functions in compiled loops, `decoder_pool.py` the decoders and the memory for batches under way. `gpu.py` is the backend
for a batch on a GPU. It uses the C library, or the Python module if the C library's version is unknown.
"""
