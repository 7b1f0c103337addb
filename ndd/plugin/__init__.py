"""Bridges to the loops of training frameworks. Built on what `ndd` exports, nothing else."""
