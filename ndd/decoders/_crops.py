"""Windows of pictures that are not decoded yet: headers of the whole batch first, then windows, then region decodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ndd._operator import Plan
from ndd.decoders._header import Header
from ndd.decoders._sample import Options, bad_image, check_size, decode, header_of

_UNKNOWN = 1 << 20  # stands in for the extents of a picture whose header cannot be read: every window fits


class Headers:
    """The headers of a batch: `extents` is int64 `[N, 2]`, `problems` has the error of each header that is bad."""

    def __init__(self, arrays: list[np.ndarray], options: Options):
        self.options = options
        self.found: list[Header | None] = []
        self.problems: list[Exception | None] = []
        sizes = []
        for data in arrays:
            header: Header | None = None
            problem: Exception | None = None
            try:
                header = header_of(data)
                check_size(header, options)
            except RuntimeError as error:
                problem = error
            self.found.append(header)
            self.problems.append(problem)
            known = header is not None and problem is None
            sizes.append(header.size(options.adjust_orientation) if known and header else (_UNKNOWN, _UNKNOWN))
        self.extents = np.array(sizes, np.int64).reshape(len(sizes), 2)

    def plan(self, starts: np.ndarray, shapes: np.ndarray) -> Plan:
        """The plan of a decoder of windows (`[N, 2]`, rows and columns). Windows that reach outside are errors of their
        sample."""
        ends = starts + shapes
        wrong = ((starts < 0) | (ends > self.extents) | (shapes < 1)).any(axis=1)
        for i in np.flatnonzero(wrong).tolist():
            if self.problems[i] is None:
                (y0, x0), (y1, x1), (height, width) = starts[i], ends[i], self.extents[i]
                self.problems[i] = bad_image(
                    f"the window of rows {y0}..{y1} and columns {x0}..{x1} is not valid for the picture of "
                    f"{height}x{width} pixels",
                    _shape(self.found[i], shapes[i], self.options),
                )
        windows = np.concatenate((starts, ends), axis=1).tolist()
        return Plan(
            None,
            per_sample={"header": self.found, "window": [tuple(w) for w in windows], "problem": self.problems},
            shared={"options": self.options},
        )


def _shape(header: Header | None, size: np.ndarray, options: Options) -> tuple[int, int, int] | None:
    height, width = (int(s) for s in size)
    return (height, width, header.out_channels(options.output_type)) if header and height > 0 and width > 0 else None


def decode_window(data: np.ndarray, header: Any, window: Any, problem: Any, options: Options) -> np.ndarray:
    """The CPU kernel of every decoder of windows."""
    if problem is not None:
        raise problem
    return decode(data, options, header, window)
