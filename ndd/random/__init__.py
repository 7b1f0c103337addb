"""Random numbers: generators, and operators that draw from them.

Values equal DALI's CPU operators for the same generator state, on every device.
"""

from ndd.random.rng import RNG, get_default_rng, set_seed

__all__ = ["RNG", "get_default_rng", "set_seed"]
