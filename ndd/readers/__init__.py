"""Readers: an index, a store of records and a sampler.

Life of a sample
----------------
1. `reader.next_epoch(batch_size=64)` returns an `Epoch` (`epoch.py`); nothing is opened yet. Its first `next()` makes
   the reader open its data: `_open` of the concrete reader builds the index and returns a `RecordStore`.
2. The arguments that all readers share (`options.py`) choose an `Order`; a `NumberStream` (`sampler.py`) cuts it into batches
   of sample numbers. `Progress` (`progress.py`) keeps the place in it, which is all that a saved state holds (`state.py`).
3. `ReadAhead` (`read_ahead.py`): a few threads take the coming batches from the stream and call `store.records(numbers)`
   (`file_store.py`, `container.py` on `file_reading.py`). They come as `Records` (`records.py`): output by output, as
   places in the buffer that was read (`_tensor/packed.py`), with the exceptions of those that cannot be read. No object is
   made for a record; a reader that parses looks at the heads of a whole batch at once (`mxnet.py`, `readers/formats/protobuf.py`).
   Records that a store gives one by one, tuples of arrays, are taken as well. A store whose work is not cut by records says
   how it is by `store.jobs(numbers)` (`video_clips.py`: a frame is decoded for all the sequences that show it), or one
   whose parts go to one array (`fits_batch.py`).
4. `Reader` (`base.py`), on the user's thread: the records of a batch become handles on the CPU (`output.py`) with
   `source_info`; the error of a record is raised here, at its batch, or the record left out (`broken_records.py`). A
   lookahead may have made them before.
5. `_present` of the reader may call operators on these handles; outputs that follow `device="gpu"` are copied there.
   Both only start work. The user gets a tuple, or a dict, of `Tensor`s or `Batch`es.

Add a reader
------------
1. `readers/name.py`: a class with a docstring (what it gives, "Args" of its own arguments only, an example that runs),
   `_open` with these arguments and `_outputs`. `mxnet.py` shows records in a container, `numpy.py` files of an own kind.
   What is in the records is its own; for what other formats share look into `file_tree.py` (paths, list files,
   patterns), `file_reading.py` (bytes without the GIL), `index_cache.py` (an index that took long to build) and
   `readers/formats/protobuf.py` (fields of messages). A path may be a URL: ask `file_reading.py` for sizes (`status`) and bytes,
   `file_tree.py` for lines and folders, and open nothing yourself, so that the reader reads object stores
   (`ndd/io/object_store.py`) without knowing it.
2. One import and one name in this file, or in `experimental/readers/__init__.py` if DALI has it there. `signature.py`
   joins the shared arguments to the signature and the docstring.
3. `tests/readers/datasets.py`: one entry that makes some data (`dali=False` for a reader that DALI has not);
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
from ndd.readers.mxnet import MXNet
from ndd.readers.nemo_asr import NemoAsr
from ndd.readers.numpy import Numpy
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.container import ContainerStore
from ndd.readers.stores.records import RecordStore
from ndd.readers.tfrecord import TFRecord
from ndd.readers.video import Video
from ndd.readers.video_resize import VideoResize
from ndd.readers.webdataset import Webdataset

__all__ = [
    "COCO",
    "Caffe",
    "Caffe2",
    "ContainerStore",
    "Epoch",
    "File",
    "MXNet",
    "NemoAsr",
    "Numpy",
    "Output",
    "Reader",
    "ReaderState",
    "RecordStore",
    "Skipped",
    "TFRecord",
    "Video",
    "VideoResize",
    "Webdataset",
]
