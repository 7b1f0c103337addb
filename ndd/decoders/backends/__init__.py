"""Backends on the CPU that decode one picture at a time: third-party libraries, each imported by one module, and the decoders
of TIFF and BMP.

nvImageCodec, the JPEG kernel and the PNG kernel have folders of their own beside this one. `ndd.decoders.backend` defines the
interface of a backend; `ndd.decoders.registry` lists the backends of each format.
"""
