"""`experimental.readers.Fits`: images from FITS files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ndd._tensor.dtype import DType, dtype as to_dtype
from ndd.readers.files.file_tree import FilePath, named_files
from ndd.readers.formats.fits_batch import FitsBatch, FitsNames
from ndd.readers.formats.fits_file import read_images
from ndd.readers.output import Output, Record
from ndd.readers.reader import Reader
from ndd.readers.stores.file_store import FileStore
from ndd.readers.stores.records import Records


class Fits(Reader):
    """Reads FITS files and gives the image in each chosen HDU, with its element type and shape.

    An image has the shape of its header, the slowest axis first (NAXIS2 is rows, NAXIS1 columns), in the machine's byte
    order. Numbers are the physical values, stored * BSCALE + BZERO: of the stored type without scaling; i8, u16, u32 or u64
    for the BZERO by which FITS stores these; otherwise f32 (from 8 and 16 bits) or f64. Integers whose header has BLANK are
    f32 or f64 too, with NaN for the pixels without a value. Images that are compressed by tiles (Rice, gzip, HCOMPRESS,
    PLIO) are decoded by astropy (`pip install astropy`); incomplete tiles are refused. Files that gzip has
    compressed (`.fits.gz`) are unpacked as a whole, whatever their names. Images of one shape lie in one array `[N, ...]`,
    if it is of up to 256 MB: `torch()` copies nothing then.

    The files come from `files`; from `file_list`, a text file with one path a line; or from `file_root`: the files of
    that folder whose names match `file_filter`, sorted, then those of each of its sub-folders (one level).

    Args:
        files: a path or a list of them; relative to `file_root` if that is given.
        file_list: the text file of paths, which are relative to `file_root`, or to the list's own folder.
        file_root: the folder of the files, or the folder that other paths are relative to.
        file_filter: glob pattern, with case.
        hdu_indices: the HDUs to read, from 1 (the primary one), one output each; an HDU may be given several times.
        dtypes: element types that the outputs must have, one for each. Default: those of the file.

    Differences from DALI: without `dtypes` the type is the file's; with device "gpu" files are read and decoded on the
    CPU and copied from pinned memory. DALI 2.4.0 reads no FITS file without a GPU, so the scaling rule is astropy's.

    Raises: IndexError if `hdu_indices` is empty. At the first sample: RuntimeError for no, conflicting or
    empty sources, an index below 1, another number of `dtypes`; at its batch for a file that is cut off or is not a FITS
    file, for an HDU that is missing, is not an image or has no pixels, and for an image of another type than in `dtypes`.

    >>> import ndd, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.fits"
    >>> cards = ["SIMPLE  = T", "BITPIX  = 16", "NAXIS   = 2", "NAXIS1  = 3", "NAXIS2  = 1", "END"]
    >>> header = "".join(card.ljust(80) for card in cards).ljust(2880).encode()
    >>> _ = file.write_bytes(header + bytes([0, 1, 0, 2, 1, 0]).ljust(2880, b"\\0"))
    >>> ndd.experimental.readers.Fits(files=file, hdu_indices=1)[0][0].torch().tolist()
    [[1, 2, 256]]
    """

    devices = ("cpu", "gpu")
    _display = "experimental.readers.Fits"

    @classmethod
    def _outputs(cls, **arguments: Any) -> tuple[Output, ...]:
        count = len(_listed(arguments.get("hdu_indices", 2)))
        if not count:
            raise IndexError(f"{cls._display}: hdu_indices: expected at least one HDU")
        dtypes = _dtypes(arguments.get("dtypes"))
        kinds = dtypes if len(dtypes) == count else [None] * count
        return tuple(Output(f"image[{k}]", kind, device="reader") for k, kind in enumerate(kinds))

    def _open(
        self,
        *,
        dtypes: DType | type | str | Sequence[DType | type | str] | None = None,
        file_filter: str = "*.fits",
        file_list: FilePath | None = None,
        file_root: FilePath | None = None,
        files: FilePath | Sequence[FilePath] | None = None,
        hdu_indices: int | Sequence[int] = (2,),
    ) -> FileStore:
        indices = [int(index) for index in _listed(hdu_indices)]
        if min(indices) < 1:
            raise RuntimeError(f"{self._display}: hdu_indices: expected numbers from 1, got {min(indices)}")
        count = len(_dtypes(dtypes))
        if dtypes is not None and count != len(indices):
            raise RuntimeError(f"{self._display}: dtypes: expected one for each of {len(indices)} HDU(s), got {count}")
        root, names = named_files(self._display, files, file_list, file_root, file_filter)
        return _Images(root, names, indices)


class _Images(FileStore):
    files_at_once = 32

    def __init__(self, root: str, names: list[str], indices: list[int]):
        super().__init__([root], names)
        self._indices = indices
        self._known = None if self._remote else FitsNames.of(self._folders[0], names, indices)

    def read(self, numbers: Sequence[int], paths: Sequence[str]) -> list[Record | Exception]:
        return list(read_images(paths, self._indices))

    def jobs(self, numbers: Sequence[int]) -> FitsBatch | None:
        return None if self._known is None else FitsBatch(self._known, numbers, self.sources)

    def records(self, numbers: Sequence[int]) -> Records:
        jobs = self.jobs(numbers)
        if jobs is None:
            return super().records(numbers)
        for job in range(jobs.count):
            jobs.run(job)
        return jobs.records()


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _dtypes(dtypes: Any) -> list[DType]:
    return [] if dtypes is None else [to_dtype(dtype) for dtype in _listed(dtypes)]
