"""Random numbers: generators, and operators that draw from them.

For the same generator state, the values on every device equal those of DALI's CPU operators.
"""

import ndd.random.streams  # noqa: F401  (random operators draw from generators by way of it)
from ndd.random.beta import beta
from ndd.random.choice import choice
from ndd.random.coin_flip import coin_flip
from ndd.random.normal import normal
from ndd.random.rng import RNG, get_default_rng, set_seed
from ndd.random.uniform import uniform

__all__ = ["RNG", "beta", "choice", "coin_flip", "get_default_rng", "normal", "set_seed", "uniform"]
