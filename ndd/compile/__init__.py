"""`python -m ndd compile`: kernels compiled before they are needed.

CPU kernels are compiled by making calls on small inputs: the calls of `bench ops` (`ndd/bench/operator_table.py`) and the
programs of `programs.py`. GPU kernels are compiled from the texts that the same calls would launch (`pretended_gpu.py`).
"""
