"""Noise: random changes of every number, pixel or count. For a given state of the generator, CPU and GPU add the same noise."""

from ndd.noise.gaussian import gaussian
from ndd.noise.salt_and_pepper import salt_and_pepper
from ndd.noise.shot import shot

__all__ = ["gaussian", "salt_and_pepper", "shot"]
