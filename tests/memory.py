"""Does memory grow?"""

import gc

import psutil


def least_growth(run, parts=4):
    """Calls `run` some times and gives the least growth of the process in one of these, in bytes.

    Threads of other tests may allocate meanwhile, and the allocator keeps what they free; a leak shows in every part.
    """
    process = psutil.Process()
    grown = []
    for _ in range(parts):
        before = process.memory_info().rss
        run()
        gc.collect()
        grown.append(process.memory_info().rss - before)
    return min(grown)
