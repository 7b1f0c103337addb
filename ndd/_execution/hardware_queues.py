"""Hardware queues of a GPU: CUDA makes 8, ndd asks for 16.

Streams share these queues, and work waits behind whatever stands before it in its queue, of other streams too. A network's thread
launches hundreds of kernels ahead, and nvJPEG uses 14 streams: in 8 queues pictures wait for kernels of the network that have
nothing to do with them. Beside ResNet-18 (H200, batches of 256, 13,148 images/s of synthetic data) ndd trains 10,573 images/s on
4.5 cores with 8 queues, 11,897 on 2.5 with 16, 11,963 on 2.4 with 32, the most that CUDA allows. A GPU's channels are limited:
24 processes that decode on one H200 at once run out of them with 32 queues each, but not with 16.
"""

from __future__ import annotations

from os import environ

__all__ = ["ask_for_hardware_queues"]

_VARIABLE = "CUDA_DEVICE_MAX_CONNECTIONS"
_QUEUES = "16"


def ask_for_hardware_queues() -> None:
    """Sets the variable that CUDA reads at the first use of a GPU by the process, unless the user has set it."""
    environ.setdefault(_VARIABLE, _QUEUES)
