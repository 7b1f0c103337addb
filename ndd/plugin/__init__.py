"""Bridges to the loops of training frameworks, built only on what `ndd` exports."""
