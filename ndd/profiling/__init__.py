"""Where the time of a loop goes: `ndd.profile`, `ndd.explain`, `ndd.progress`.

`recorder.py` creates a `Span` (`spans.py`) for each piece of work and each wait (`ndd/_execution/observation.py` reports them);
every active `Profile` (`loop_profile.py`) gets it. `report.py` writes the table, `trace.py` the file for Perfetto, and
`explanation.py` tells how a value was computed. `device_times.py` measures how long CUDA streams worked. `progress_bar.py` is
the only importer of tqdm.
"""

from ndd.profiling.explanation import explain
from ndd.profiling.loop_profile import OperatorTimes, Profile, profile
from ndd.profiling.progress_bar import progress, samples_of
from ndd.profiling.recorder import recorder

__all__ = ["OperatorTimes", "Profile", "explain", "profile", "progress", "recorder", "samples_of"]
