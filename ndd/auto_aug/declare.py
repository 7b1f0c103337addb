"""`@augmentation`: from a transformation with a parameter to an augmentation with a magnitude."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import ndd
from ndd._tensor.user_line import warn_user
from ndd.auto_aug.nodes import batch_of, is_node, numbers_of, on_batches
from ndd.auto_aug.signed_bin import SignedMagnitudeBin, signed_bin

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_AS_GIVEN: Any = object()  # an argument of `Augmentation.augmentation` that does not change
_NARROW = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}  # constants have 32 bits, as in DALI


class MissingArgument(TypeError):
    """An augmentation was called without an argument that its function needs."""

    def __init__(self, augmentation: Augmentation, names: list[str]):
        super().__init__(
            f"The augmentation `{augmentation.name}` needs {', '.join(f'`{n}`' for n in names)}, which the call did not "
            "give: pass it by name to the function that applies the augmentations"
        )
        self.augmentation = augmentation
        self.names = names


class Augmentation:
    """A transformation of batches whose strength is a magnitude bin: the result of `@augmentation`.

    `shear_x(images, magnitude_bin=5, num_magnitude_bins=31)` calls `op(images, parameter)` with the parameter of the bin, see
    `augmentation`.

    Args:
        op: takes samples and a parameter, returns as many samples.
        mag_range, randomly_negate, mag_to_param, param_device, name: as for `augmentation`.

    Raises TypeError for a function that does not take two positional arguments.

    >>> import ndd
    >>> image = ndd.tensor([[[10, 20, 30]]], dtype=ndd.uint8, layout="HWC")
    >>> ndd.auto_aug.augmentations.invert(image).torch().flatten().tolist()
    [245, 235, 225]
    """

    def __init__(
        self,
        op: Callable[..., Any],
        mag_range: Any = None,
        randomly_negate: bool | None = None,
        mag_to_param: Callable[[Any], Any] | None = None,
        param_device: str | None = None,
        name: str | None = None,
    ):
        self.op = op
        self.mag_range = mag_range
        self.randomly_negate = bool(randomly_negate)
        self.mag_to_param = mag_to_param or np.array
        self.param_device = param_device or "cpu"
        self.name = name or getattr(op, "__name__", repr(op))
        self._settings = {
            "mag_range": mag_range, "randomly_negate": randomly_negate, "mag_to_param": mag_to_param,
            "param_device": param_device, "name": name,
        }  # fmt: skip
        self._tables: dict[int | None, np.ndarray] = {}
        parameters = list(inspect.signature(op).parameters.values())
        positional = [p for p in parameters if p.kind in _POSITIONAL]
        if len(positional) < 2:
            raise TypeError(
                f"{op} takes {len(positional)} positional argument(s): a function decorated with `@augmentation` takes "
                "two, the samples and the parameter"
            )
        named = [p for p in parameters if p.kind in _NAMED and p not in positional[:2]]
        self._takes = [p.name for p in named]
        self._needs = [p.name for p in named if p.default is p.empty]

    def __repr__(self) -> str:
        settings = [f"{k}={v!r}" for k, v in self._settings.items() if v is not None]
        return f"Augmentation({', '.join([repr(self.op), *settings])})"

    def __call__(
        self, data: Any, *, magnitude_bin: Any = None, num_magnitude_bins: int | None = None, **kwargs: Any
    ) -> Any:
        """`op(data, parameter, **kwargs)`.

        Args:
            data: a batch of samples, or one; in pipeline mode a DataNode.
            magnitude_bin: an integer, a batch of integers, or a `signed_bin`. With `randomly_negate` and without a sign
                the signs are drawn here, with a warning.
            num_magnitude_bins: the number of bins.
            kwargs: further arguments; those that `op` does not take are ignored.

        Raises `MissingArgument`, a TypeError, without an argument that `op` needs, ValueError without a bin or with
        one out of range.
        """
        missing = [n for n in self._needs if n not in kwargs]
        if missing:
            raise MissingArgument(self, missing)
        parameter = self._parameter(data, magnitude_bin, num_magnitude_bins)
        return self.op(data, parameter, **{k: v for k, v in kwargs.items() if k in self._takes})

    def augmentation(
        self,
        mag_range: Any = _AS_GIVEN,
        randomly_negate: Any = _AS_GIVEN,
        mag_to_param: Any = _AS_GIVEN,
        param_device: Any = _AS_GIVEN,
        name: Any = _AS_GIVEN,
        augmentation_cls: type[Augmentation] | None = None,
    ) -> Augmentation:
        """An augmentation of the same function with some settings replaced.

        Args:
            mag_range, randomly_negate, mag_to_param, param_device, name, augmentation_cls: as for
                `auto_aug.augmentation`.

        >>> import ndd
        >>> ndd.auto_aug.augmentations.shear_x.augmentation(mag_range=(0, 0.5)).mag_range
        (0, 0.5)
        """
        changed = {
            "mag_range": mag_range, "randomly_negate": randomly_negate, "mag_to_param": mag_to_param,
            "param_device": param_device, "name": name,
        }  # fmt: skip
        settings = {k: self._settings[k] if v is _AS_GIVEN else v for k, v in changed.items()}
        return (augmentation_cls or type(self))(self.op, **settings)

    def _takes_argument(self, name: str) -> bool:
        """Whether `op` has an argument of this name, beside samples and parameter.

        Args:
            name: of the argument.
        """
        return name in self._takes

    def _parameter(self, data: Any, magnitude_bin: Any, num_magnitude_bins: int | None) -> Any:
        """The parameter of each sample: a batch, one Tensor for all, or None for an augmentation without magnitudes."""
        if self.mag_range is None:
            return None
        if magnitude_bin is None:
            raise ValueError(f"The augmentation `{self.name}` has a `mag_range`: it needs `magnitude_bin`. {self}")
        table = self._table(num_magnitude_bins)
        if not isinstance(magnitude_bin, SignedMagnitudeBin):
            if self.randomly_negate:
                magnitude_bin = self._with_sign(data, magnitude_bin)
            else:
                return self._looked_up(table, data, magnitude_bin)
        # Other augmentations of a suite may need the sign; one that does not uses only the bin.
        index = magnitude_bin.signed_magnitude_idx if self.randomly_negate else magnitude_bin.bin
        return self._looked_up(table, data, index)

    def _with_sign(self, data: Any, magnitude_bin: Any) -> SignedMagnitudeBin:
        warn_user(
            f"The augmentation `{self.name}` has `randomly_negate=True` and got a `magnitude_bin` without a sign: the signs "
            "are drawn now. `signed_bin(magnitude_bin)` draws them once for several augmentations"
        )
        size = data.batch_size if isinstance(data, ndd.Batch) else 1
        return signed_bin(magnitude_bin, batch_size=size)

    def _looked_up(self, table: np.ndarray, data: Any, index: Any) -> Any:
        device = self.param_device
        each = is_node(data)  # the functions of a pipeline take only batches

        def look_up(data: Any, index: Any) -> Any:
            rows = np.asarray(index) if isinstance(index, int) else numbers_of(index)
            if rows.size and (rows.min() < 0 or rows.max() >= len(table)):
                per_bin = 2 if self.randomly_negate else 1
                bins = np.unique(rows // per_bin).tolist()
                raise ValueError(
                    f"The augmentation `{self.name}` got magnitude bins from {bins[0]} to {bins[-1]}, it has bins 0 to "
                    f"{len(table) // per_bin - 1}"
                )
            values: Any
            if isinstance(index, int) and each:
                values = batch_of(np.repeat(table[rows][None], data.batch_size, axis=0))
            else:
                values = ndd.tensor(table[rows]) if isinstance(index, int | ndd.Tensor) else batch_of(table[rows])
            target = data.device if device == "auto" else device
            return values if target == values.device else values.to_device(target)

        return on_batches(look_up)(data, index)

    def _parameter_table(self, bins: int) -> np.ndarray:
        """The parameters of all bins [R, ...]: R is `bins`, or twice as many if magnitudes are negated, or 1 if there are none.

        Args:
            bins: the number of magnitudes.
        """
        return np.zeros((1, 0), np.float32) if self.mag_range is None else self._table(bins)

    def _table(self, bins: int | None) -> np.ndarray:
        """The parameters of all bins; if magnitudes are negated, in the order bin 0, bin 0 negated, bin 1, ..."""
        if bins not in self._tables:
            magnitudes = self._magnitudes(bins)
            if self.randomly_negate:
                magnitudes = np.array([m for magnitude in magnitudes for m in (magnitude, -magnitude)])
            self._tables[bins] = self._parameters(magnitudes)
        return self._tables[bins]

    def _magnitudes(self, bins: int | None) -> Any:
        mag_range = self.mag_range
        if isinstance(mag_range, np.ndarray):
            if bins is not None and len(mag_range) != bins:
                raise ValueError(
                    f"The augmentation `{self.name}` has {len(mag_range)} magnitudes in its `mag_range`, the call has "
                    f"num_magnitude_bins={bins}"
                )
            return mag_range
        if bins is None:
            raise ValueError(
                f"The augmentation `{self.name}` needs `num_magnitude_bins` beside `magnitude_bin`. {self}"
            )
        if not hasattr(mag_range, "__len__") or len(mag_range) != 2:
            raise ValueError(
                f"The augmentation `{self.name}`: `mag_range` is to be (low, high) or an array of magnitudes, got {mag_range!r}"
            )
        return np.linspace(mag_range[0], mag_range[1], bins, dtype=np.float32)

    def _parameters(self, magnitudes: Any) -> np.ndarray:
        parameters = []
        for magnitude in magnitudes:
            parameter = self.mag_to_param(magnitude)
            if is_node(parameter):
                raise TypeError(
                    f"The augmentation `{self.name}`: `mag_to_param` is to return numbers, not a DataNode: it is asked once "
                    "for each magnitude. Call operators in the augmentation itself"
                )
            parameters.append(np.array(parameter))
            if parameters[-1].shape != parameters[0].shape or parameters[-1].dtype != parameters[0].dtype:
                raise ValueError(
                    f"The augmentation `{self.name}`: `mag_to_param` is to return arrays of one type and shape. For magnitude "
                    f"{magnitudes[0]} it gave {parameters[0].dtype} of shape {parameters[0].shape}, for {magnitude} "
                    f"{parameters[-1].dtype} of shape {parameters[-1].shape}"
                )
        table = np.array(parameters)
        return table.astype(_NARROW.get(table.dtype, table.dtype))


def augmentation(
    function: Callable[..., Any] | None = None,
    *,
    mag_range: Any = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[Any], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Any:
    """Turns a function of samples and a parameter into an augmentation: `@augmentation` or `@augmentation(mag_range=...)`.

    The function gets a batch (for one sample a Tensor; in pipeline mode a DataNode), the parameter of each sample as a batch,
    and by name those arguments of `apply_rand_augment` and similar functions that it declares; it returns as many samples. In a
    loop it is written with the operators of `ndd`, in pipeline mode with those of `fn`.

    Args:
        mag_range: (low, high): the magnitude of bin b of B is `linspace(low, high, B)[b]`; or an array of all
            magnitudes. Without it the parameter is None.
        randomly_negate: negate the magnitude of a sample with probability 1/2.
        mag_to_param: returns the parameter of a magnitude: numbers or an array, of one type and shape for all magnitudes. It is
            called once for every magnitude. Default: the magnitude itself.
        param_device: the device of the parameters: "cpu" (default), "gpu", or "auto" for the device of the samples.
        name: default: the name of the function.
        augmentation_cls: in place of `Augmentation`.
        function: the function that is decorated; without it the result is the decorator.

    Raises TypeError for objects that cannot be called, augmentations, and functions of fewer than two arguments.

    >>> import ndd
    >>> @ndd.auto_aug.augmentation(mag_range=(0, 10))
    ... def lighten(images, by):
    ...     return ndd.brightness(images, brightness_shift=by / 255)
    >>> image = ndd.batch([[[[100]]]], dtype=ndd.uint8, layout="HWC")
    >>> lighten(image, magnitude_bin=5, num_magnitude_bins=11).torch().item()
    105
    """

    def decorate(function: Callable[..., Any]) -> Augmentation:
        if isinstance(function, Augmentation):
            raise TypeError(
                f"`@augmentation` got the augmentation `{function.name}`: change it with `{function.name}.augmentation(...)`, "
                f"or decorate `{function.name}.op`"
            )
        if not callable(function):
            raise TypeError(f"`@augmentation` decorates a function, got {function!r}")
        cls = augmentation_cls or Augmentation
        return cls(
            function, mag_range=mag_range, randomly_negate=randomly_negate, mag_to_param=mag_to_param,
            param_device=param_device, name=name,
        )  # fmt: skip

    return decorate if function is None else decorate(function)


def forbid_unused(augmentations: Any, named: dict[str, Any], call: str) -> None:
    """TypeError for arguments that no augmentation takes."""
    unused = [n for n in named if not any(a._takes_argument(n) for a in augmentations)]
    if unused:
        names = ", ".join(f"`{n}`" for n in unused)
        raise TypeError(f"{call}: no augmentation takes {names}")


__all__ = ["Augmentation", "MissingArgument", "augmentation", "forbid_unused"]
