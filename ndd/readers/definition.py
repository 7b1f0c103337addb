"""`Definition`: the part of a reader that its author writes."""

from __future__ import annotations

from typing import Any

from ndd.readers.options import Options
from ndd.readers.output import Output
from ndd.readers.stores.records import RecordStore


class Definition:
    """The base of concrete readers, which define two methods, a third one if they compute something, and some class attributes.

    `_open` and `_outputs` are required. The class attributes, with their defaults:

        devices = ("cpu",)            the devices that `device` may name; with "gpu", outputs declared with device "reader"
                                      go there
        gives_dicts = False           samples are dicts, keyed by the names of the outputs, instead of tuples
        _permutes_first = True        `random_shuffle` permutes all samples before its buffer. Readers of containers say
                                      False: their buffer shuffles records in stored order
        _has_epoch_shuffle = True     there are `shuffle_after_epoch` and its seed
        _not_in_dali = ()             own arguments that DALI's reader lacks; they come last in the signature
        _leading = ()                 own arguments that may be given by position, before all others
        _display = "readers.Name"     the name in errors; the default is made of the class's name

    A type checker accepts any parameters in an override of the three methods. The methods may read `self._display`,
    `self._options` (the arguments that all readers share) and `self._arguments` (the reader's own arguments by name,
    converted to the types of their annotations).
    """

    devices: tuple[str, ...] = ("cpu",)
    gives_dicts: bool = False
    _permutes_first: bool = True
    _has_epoch_shuffle: bool = True
    _not_in_dali: tuple[str, ...] = ()
    _options_type: type[Options] = Options
    _leading: tuple[str, ...] = ()
    _display: str = "readers.Reader"
    _options: Options
    _arguments: dict[str, Any]

    def _open(self, *_: Any, **arguments: Any) -> RecordStore:
        """Build the index and return the store: `def _open(self, *, path: str, flag: bool = False) -> RecordStore`.

        The parameters are the reader's own arguments, all by name. Their annotations say how values are converted (`bool`,
        `int`, `float`, `DType`) or checked (`Literal`); None stands for the default. Called once, when the first sample is
        asked for. Raise errors about the data as a whole here; the store raises errors about single records.
        """
        raise NotImplementedError

    @classmethod
    def _outputs(cls, *_: Any, **arguments: Any) -> tuple[Output, ...]:
        """The outputs for these values of the reader's own arguments; required ones may be missing. Opens nothing."""
        raise NotImplementedError

    def _present(self, *values: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs, computed from what was read: a Tensor or Batch for each array of a record, those beyond the outputs
        included. It may call operators of ndd; it runs on the user's thread, and waits for nothing."""
        return values
