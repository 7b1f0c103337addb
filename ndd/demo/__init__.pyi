# Written by `python -m ndd stubs`. Do not edit.



__all__ = ['photos']

def photos() -> str: ...
