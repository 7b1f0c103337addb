"""Readers: an index, a store of records and a sampler.

What is where
-------------
    reader.py        `Reader`: the methods for users
    definition.py    `Definition`: the part of a reader that its author writes
    options.py       the arguments that all readers share; `signature.py` adds them to each reader's own
    output.py        `Output`: a reader's declaration of each output
    file.py, ...     the readers, a file each
    epochs/          what happens between `next_epoch` and a batch
    sampling/        the order of the samples
    formats/         parsers of containers, archives and annotations, and the stores of some
    stores/          how many records there are, and record i of them
    files/           bytes, folders, list files, indexes on disk

A folder imports only those below it in this list.

Life of a sample
----------------
1. `reader.next_epoch(batch_size=64)` returns an `Epoch` (`epochs/epoch.py`); nothing is opened yet. Its first `next()` makes
   the reader's `Session` (`epochs/session.py`) open the data: `_open` of the concrete reader builds the index and returns a
   `RecordStore` (`stores/records.py`).
2. The shared arguments choose an `Order`; a `NumberStream` (`sampling/sampler.py`) cuts it into batches of sample numbers.
   `Progress` (`epochs/progress.py`) keeps the place in it, which is all that a saved state holds (`epochs/state.py`).
3. `RecordReadAhead` (`epochs/read_ahead.py`, on `ndd/read_ahead.py`): a few threads take the coming batches from the stream
   and call `store.records(numbers)`. The result is a `Records`: for each output the places of all samples in the buffer that
   was read, and the exceptions of those records that cannot be read. There is no object for a record; a reader that parses
   looks at the headers of a whole batch at once (`mxnet.py`, `formats/protobuf.py`). A store may also give records one by
   one, as tuples of arrays. A store whose work is not divided by records gives `store.jobs(numbers)` instead
   (`stores/video_clips.py` decodes a frame once for all sequences that show it).
4. `BatchMaker` (`epochs/batch_maker.py`), on the user's thread: the records become Tensors or Batches on the CPU with
   `source_info`. The error of a record is raised here, at its batch, or the record is left out (`epochs/broken_records.py`).
   Lookahead may have made a batch before.
5. `_present` of the reader may call operators on these values; outputs that follow `device="gpu"` are copied there.
   Both only start work. The user gets a tuple, or a dict, of `Tensor`s or `Batch`es.

Add a reader
------------
1. `readers/name.py`: copy the nearest reader. `file.py` reads whole files, `mxnet.py` records in containers, `numpy.py` files
   that are parsed. A reader is a class with a docstring (its outputs, "Args" of its own arguments only, an example that
   runs), `_open` and `_outputs`; `definition.py` lists what else it may override. Look into `files/` for paths, list files and
   patterns (`file_tree.py`), for bytes (`file_reading.py`) and for an index that takes long to build (`index_cache.py`); into
   `stores/` for the store to subclass. A path may be a URL: ask `file_reading.py` for sizes (`status`) and bytes and
   `file_tree.py` for lines and folders, and open nothing yourself. The reader then reads object stores without knowing it.
2. One import and one name in this file, or in `experimental/readers/__init__.py` if DALI has the reader there.
3. `tests/readers/datasets.py`: one entry that makes some data (`dali=False` for a reader that DALI lacks);
   `test_every_reader.py` then checks order, shards, resume, access by number, worker processes and declared outputs.
   `tests/readers/test_name.py`: the contents, against DALI where it has this reader.
4. `python -m ndd stubs` writes the types that editors see, `python -m ndd coverage --index notebooks/operators.md` the index;
   without `--index` it compares the signature with DALI's.
"""

from ndd.readers.caffe import Caffe
from ndd.readers.caffe2 import Caffe2
from ndd.readers.coco import COCO
from ndd.readers.epochs.broken_records import Skipped
from ndd.readers.epochs.epoch import Epoch
from ndd.readers.epochs.state import ReaderState
from ndd.readers.file import File
from ndd.readers.hugging_face import HuggingFace
from ndd.readers.litdata import LitData
from ndd.readers.mds import MDS
from ndd.readers.mix import Mix
from ndd.readers.mxnet import MXNet
from ndd.readers.nemo_asr import NemoAsr
from ndd.readers.numpy import Numpy
from ndd.readers.output import Output
from ndd.readers.parquet import Parquet
from ndd.readers.reader import Reader
from ndd.readers.stores.container import ContainerStore
from ndd.readers.stores.records import RecordStore
from ndd.readers.table import Table
from ndd.readers.tfrecord import TFRecord
from ndd.readers.video import Video
from ndd.readers.video_resize import VideoResize
from ndd.readers.webdataset import Webdataset
from ndd.readers.zip import Zip

__all__ = [
    "COCO",
    "MDS",
    "Caffe",
    "Caffe2",
    "ContainerStore",
    "Epoch",
    "File",
    "HuggingFace",
    "LitData",
    "MXNet",
    "Mix",
    "NemoAsr",
    "Numpy",
    "Output",
    "Parquet",
    "Reader",
    "ReaderState",
    "RecordStore",
    "Skipped",
    "TFRecord",
    "Table",
    "Video",
    "VideoResize",
    "Webdataset",
    "Zip",
]
