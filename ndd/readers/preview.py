"""A reader in a notebook: its arguments, size and place, and its first samples. The preview does not change its state."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from ndd._tensor import Batch, Tensor
from ndd._tensor.picture import image_tag, small_picture
from ndd._tensor.secrets import error_text, without_secrets

if TYPE_CHECKING:
    from ndd.readers.reader import Reader

_SHOWN = 4
_LONGEST = 120


def reader_html(reader: Reader) -> str:
    """The reader's line of text, and a table with a row for each of the first samples, or the error if they cannot be read."""
    try:
        count = len(reader)
        rows = _rows(reader, min(_SHOWN, count))
        facts = f"{count:,} samples"
    except Exception as error:  # shown, not raised: the cell only creates a reader, which succeeded
        rows, facts = "", f"cannot be read: {error_text(error)}"
    text = html.escape(without_secrets(repr(reader)))
    return f'<div style="font-family:monospace">{text}<br>{html.escape(facts)}</div>{rows}'


def _rows(reader: Reader, count: int) -> str:
    if not count:
        return ""
    values = reader.fetch(range(count))
    outputs: dict[str, Any] = (
        values
        if isinstance(values, dict)
        else dict(
            zip(
                (o.name for o in reader._session.outputs),
                values if isinstance(values, tuple) else (values,),
                strict=False,
            )
        )
    )
    sources = next((v.source_info for v in outputs.values() if isinstance(v, Batch) and v.source_info), [None] * count)
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in ("", *outputs, "source"))
    lines = [f"<tr>{head}</tr>"]
    for i in range(len(sources)):
        cells = [str(i), *(_cell(_sample(v, i)) for v in outputs.values())]
        source = html.escape(without_secrets(sources[i] or ""))[-_LONGEST:]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in (*cells, source)) + "</tr>")
    return f'<table style="font-family:monospace">{"".join(lines)}</table>'


def _sample(values: Any, i: int) -> Any:
    """Sample `i` of a batch, or of a list of Python objects."""
    return values.cpu().tensors[i] if isinstance(values, Batch) else values[i]


def _cell(sample: Any) -> str:
    """A thumbnail of a picture, the value of a number or a short text, or the shape of anything else."""
    if not isinstance(sample, Tensor):
        return html.escape(str(sample)[:_LONGEST])
    array = np.asarray(sample)
    if array.size <= 8:
        return html.escape(" ".join(str(number) for number in array.reshape(-1).tolist()))
    picture = small_picture(array)
    if picture is not None:
        return image_tag([picture])
    shape = " x ".join(str(extent) for extent in array.shape)
    return f"{array.size:,} bytes" if array.dtype == np.uint8 and array.ndim == 1 else f"{array.dtype} {shape}"
