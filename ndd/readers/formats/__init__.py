"""Parsers of the readers' containers: records, archives, annotations."""
