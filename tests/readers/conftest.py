import warnings

import numpy as np
import pytest


@pytest.fixture(scope="session")
def numbered(tmp_path_factory):
    """`numbered(n)`: paths of n files whose contents are their numbers."""
    root = tmp_path_factory.mktemp("numbered")
    made: list[str] = []

    def files(count):
        while len(made) < count:
            path = root / f"{len(made)}.bin"
            path.write_text(str(len(made)))
            made.append(str(path))
        return made[:count]

    return files


@pytest.fixture(autouse=True)
def _quiet_unfinished_epochs():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the epoch before was not finished")
        yield


def labels_of(value):
    """The labels of one (data, label) pair: a number for a sample, a list for a batch."""
    label = value[1]
    if hasattr(label, "tensors"):
        return [int(np.asarray(sample)[0]) for sample in label.tensors]
    return int(np.asarray(label)[0])


def flat(lists):
    return [item for one in lists for item in one]


def epoch_of(reader, batch=None, limit=None):
    out = []
    for value in reader.next_epoch() if batch is None else reader.next_epoch(batch_size=batch):
        out.append(labels_of(value))
        if limit and len(out) == limit:
            break
    return out
