# Written by `python -m ndd stubs`. Do not edit.

from ndd._tensor.invariant import invariant

__all__ = ['invariant']


