"""Lookahead."""
