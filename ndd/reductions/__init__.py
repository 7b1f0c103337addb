"""Reductions over axes: sums, means, spreads and extremes of every sample."""

from ndd.reductions.max import max
from ndd.reductions.mean import mean
from ndd.reductions.mean_square import mean_square
from ndd.reductions.min import min
from ndd.reductions.rms import rms
from ndd.reductions.std_dev import std_dev
from ndd.reductions.sum import sum
from ndd.reductions.variance import variance

__all__ = ["max", "mean", "mean_square", "min", "rms", "std_dev", "sum", "variance"]
