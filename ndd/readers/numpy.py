"""`readers.Numpy`: arrays from `.npy` files, whole or in part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ndd._tensor import Device
from ndd._tensor.dtype import int32
from ndd.readers.files.file_tree import FilePath, named_files
from ndd.readers.files.gpudirect import landed, usable
from ndd.readers.files.labelled_files import label_numbers
from ndd.readers.formats.npy_file import read_arrays
from ndd.readers.formats.region import Region, chosen_region
from ndd.readers.options import check_device
from ndd.readers.output import Output
from ndd.readers.reader import Reader
from ndd.readers.stores.file_store import FileStore
from ndd.readers.stores.records import Records


class Numpy(Reader):
    """Reads `.npy` files. Outputs: the array, with its element type and shape; with `labels` also the label as i32 `[1]`.

    The files come from `files`; from `file_list`, a text file with one path per line; or from `file_root`: the files of
    that folder whose names match `file_filter`, sorted, then those of each of its sub-folders (one level).

    To read a region of the arrays, pass one of `roi_start`, `rel_roi_start` (default: 0) and one of `roi_end`, `rel_roi_end`,
    `roi_shape`, `rel_roi_shape` (default: the array's end): one number per axis of the array (or of `roi_axes`), or a single
    number for all axes. Relative numbers are fractions of the extent; they are rounded, half away from zero. Only the bytes from
    the region's first element to its last are read. In a pipeline these arguments may be nodes: each sample then has its own
    region, which `slice` cuts from the whole array.

    Args:
        files: a path or a list of them; relative to `file_root` if that is given.
        file_list: the text file of paths, which are relative to `file_root`, or to the list's own folder.
        file_root: the folder of the files, or the folder that other paths are relative to.
        file_filter: glob pattern, with case.
        labels: one integer for each of `files`, as in `readers.File`. (Not in DALI.) Default: no second output. Labels stay
            on the CPU whatever the device.
        roi_start, roi_end, roi_shape: in elements. Fractions are truncated.
        rel_roi_start, rel_roi_end, rel_roi_shape: fractions of the extent.
        roi_axes: the axes that the region's numbers are for, negative ones from the end. Default: all.
        out_of_bounds_policy: for a region that extends beyond the array: "error", "pad" with `fill_value`, or
            "trim_to_shape", which trims the region (possibly to nothing).
        fill_value: rounded and clamped to the element type.
        cache_header_information, register_buffers, use_o_direct: accepted, without effect: equal headers are always parsed
            once. As in DALI, `use_o_direct` requires `dont_use_mmap`.

    Differences from DALI: big-endian files and versions 2 and 3 of the format are read as well. With device "gpu", GPUDirect
    reads files directly to the GPU, bypassing the CPU and the page cache, if kvikio is installed (`pip install kvikio-cu13`, or
    -cu12) and finds its driver. Arrays that must be byte-swapped, transposed, cut or padded, and objects of a store, are read on
    the CPU. (So far this was tested only with a stand-in for kvikio.)
    Without GPUDirect, several threads read files on the CPU and copy them from pinned memory: 22 GB/s from the page cache on one
    H100, where kvikio without its driver reached 25. The environment variable `NDD_GPUDIRECT=0` disables GPUDirect;
    `NDD_GPUDIRECT=1` uses kvikio even without its driver.

    Raises (at the first sample): RuntimeError for no, conflicting or empty sources, for two arguments for one end of the region,
    or if `labels` and `files` differ in length; ValueError for labels that are not 32-bit integers. At its batch: RuntimeError
    for a truncated file, a file that is not `.npy` or holds other types than bool, integers and floats, for a region that does
    not fit, and for a batch of different types or numbers of dimensions.

    >>> import ndd, numpy, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> numpy.save(folder / "a.npy", numpy.arange(12).reshape(3, 4))
    >>> reader = ndd.readers.Numpy(file_root=folder, roi_start=[1, 2], roi_shape=2)
    >>> reader[0][0].torch().tolist()
    [[6, 7], [10, 11]]
    """

    devices = ("cpu", "gpu")
    _not_in_dali = ("labels",)

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        array = Output("array", device="reader")
        return (array,) if arguments.get("labels") is None else (array, Output("label", int32, 1))

    def _open(
        self,
        *,
        cache_header_information: bool = False,
        file_filter: str = "*.npy",
        file_list: FilePath | None = None,
        file_root: FilePath | None = None,
        files: FilePath | Sequence[FilePath] | None = None,
        fill_value: float = 0.0,
        labels: int | Sequence[int] | None = None,
        out_of_bounds_policy: Literal["error", "pad", "trim_to_shape"] = "error",
        register_buffers: bool = True,
        rel_roi_end: float | Sequence[float] | None = None,
        rel_roi_shape: float | Sequence[float] | None = None,
        rel_roi_start: float | Sequence[float] | None = None,
        roi_axes: int | Sequence[int] = (),
        roi_end: int | Sequence[int] | None = None,
        roi_shape: int | Sequence[int] | None = None,
        roi_start: int | Sequence[int] | None = None,
        use_o_direct: bool = False,
    ) -> FileStore:
        region = chosen_region(self._display, self._arguments)
        if use_o_direct and not self._options.dont_use_mmap:
            raise RuntimeError(f"{self._display}: use_o_direct requires dont_use_mmap=True")
        if labels is not None and files is None:
            raise RuntimeError(f"{self._display}: `labels` is valid only together with `files`")
        root, names = named_files(self._display, files, file_list, file_root, file_filter)
        numbers = None if labels is None else label_numbers(self._display, labels, names)
        here = str(self._options.device)
        straight = check_device(self._display, here, self.devices) == "gpu" and usable(self._display)
        return _Arrays(root, names, numbers, region, fill_value, Device(here) if straight else None)

    def _present(self, array: Any, *labels: Any) -> tuple[Any, ...]:
        return landed(array), *labels


class _Arrays(FileStore):
    files_at_once = 32

    def __init__(
        self,
        root: str,
        names: list[str],
        labels: np.ndarray | None,
        region: Region | None,
        fill: float,
        gpu: Device | None,
    ):
        super().__init__([root], names, labels=labels)
        self._labelled = labels is not None
        self._region, self._fill, self._gpu = region, fill, gpu

    def read(self, numbers: Sequence[int], paths: Sequence[str]) -> Records:
        records = read_arrays(paths, self._region, self._fill, self._gpu, self.usual)
        if self._labelled and records.columns:  # no array could be read, so there is no label either
            sound = [number for place, number in enumerate(numbers) if place not in records.faults]
            records.columns.append(self._labels[sound].reshape(-1, 1))
        return records
