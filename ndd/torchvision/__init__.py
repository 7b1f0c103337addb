"""torchvision's names, implemented by ndd's operators: `from ndd.torchvision import v2`.

torchvision itself is not needed. Its `tv_tensors` and enums are recognised where it is installed and imported.
"""

from ndd.torchvision import v2

__all__ = ["v2"]
