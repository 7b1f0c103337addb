"""Where the time of a loop goes: `ndd.profile`, `ndd.explain`, `ndd.progress`.

`recorder.py` makes a `Span` (`spans.py`) of each piece of work and each wait (`ndd/_execution/observation.py` reports them);
every `Profile` (`loop_profile.py`) that is on gets it. `report.py` writes the table, `trace.py` the file for Perfetto,
`explanation.py` says how one value was made. `device_times.py` asks CUDA how long its streams worked. `progress_bar.py` is the only
importer of tqdm.
"""

from ndd.profiling.explanation import explain
from ndd.profiling.loop_profile import OperatorTimes, Profile, profile
from ndd.profiling.progress_bar import progress, samples_of

__all__ = ["OperatorTimes", "Profile", "explain", "profile", "progress", "samples_of"]
