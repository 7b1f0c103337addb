"""Backends on the CPU that decode one picture at a time: libraries of others, each imported by its module alone, and the
decoders of TIFF and BMP.

nvImageCodec has a folder of its own beside this one, and so has the JPEG kernel. See `ndd.decoders.backend` for what a backend
is, and `ndd.decoders.registry` for which one decodes what.
"""
