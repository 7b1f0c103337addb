"""Backends on the CPU that are libraries of others: one module each, the only importer of its library here.

nvImageCodec has a folder of its own beside this one, and so has the JPEG kernel. See `ndd.decoders.backend` for what a backend
is, and `ndd.decoders.registry` for which one decodes what.
"""
