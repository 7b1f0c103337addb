"""Noise: random changes of every number, pixel or count. The same noise on CPU and GPU for a generator's state."""

from ndd.noise.gaussian import gaussian
from ndd.noise.salt_and_pepper import salt_and_pepper
from ndd.noise.shot import shot

__all__ = ["gaussian", "salt_and_pepper", "shot"]
