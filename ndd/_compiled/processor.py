"""The features of this machine's processor, according to LLVM."""

from __future__ import annotations


def processor_has(feature: str) -> bool:
    """Whether it has a feature of LLVM's list, such as "fma", "f16c" or "avx512f"."""
    from llvmlite import binding

    return bool(binding.get_host_cpu_features().get(feature, False))
