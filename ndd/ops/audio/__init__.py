"""Operators of the top-level namespace."""
