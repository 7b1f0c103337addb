"""Starts the processes that compile (`_compiled/compile_processes.py`) before torch is imported, which takes seconds."""

from __future__ import annotations

import sys

from ndd._bare_packages import standing_in

_PACKAGES = ("ndd._compiled", "ndd._execution", "ndd._tensor")

if not any([name in sys.modules for name in _PACKAGES]):
    with standing_in(*_PACKAGES):
        from ndd._compiled.background import background
        from ndd._compiled.early_kernels import EARLY
        from ndd._compiled.kernel_cache import folder_if_all_empty

        background.start_early(folder_if_all_empty, EARLY)
