"""Reading files inside a program that works on tensors."""

from ndd.io import file

__all__ = ["file"]
