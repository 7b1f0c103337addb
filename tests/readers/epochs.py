"""What an epoch gave, as plain numbers: the label of a sample is its number."""

import numpy as np


def labels_of(value):
    """The labels of one (data, label) pair: a number for a sample, a list for a batch."""
    label = value[1]
    if hasattr(label, "tensors"):
        return [int(np.asarray(sample)[0]) for sample in label.tensors]
    return int(np.asarray(label)[0])


def flat(lists):
    return [item for single in lists for item in single]


def epoch_of(reader, batch=None, limit=None):
    out = []
    for value in reader.next_epoch() if batch is None else reader.next_epoch(batch_size=batch):
        out.append(labels_of(value))
        if limit and len(out) == limit:
            break
    return out
