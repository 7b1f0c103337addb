"""Does memory grow?"""

import gc

import psutil


def resident():
    """Bytes of the process in memory."""
    return psutil.Process().memory_info().rss


def least_growth(run, parts=4, size=resident):
    """Calls `run` some times and gives the least growth of `size()` in one of these: of the process, in bytes.

    Threads of other tests may allocate meanwhile, and the allocator keeps what they free; a leak shows in every part.
    """
    grown = []
    for _ in range(parts):
        before = size()
        run()
        gc.collect()
        grown.append(size() - before)
    return min(grown)
