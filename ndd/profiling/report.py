"""The table of a profile: as text, and as HTML in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ndd.profiling.loop_profile import Profile

_TITLES = ("", "calls", "ahead", "CPU ms", "GPU ms", "waited ms", "MB")


def text(profile: Profile) -> str:
    """The summary of the loop, then a line for each operator."""
    table = [_TITLES, *_rows(profile)]
    widths = [max(len(row[k]) for row in table) for k in range(len(_TITLES))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]]
        )
        for row in table
    ]
    return "\n".join([*_sentences(profile), "", *[line.rstrip() for line in lines]])


def html(profile: Profile) -> str:
    """The same as paragraphs and a table."""
    style = ' style="text-align: right"'
    head = "".join(f"<th{style if title else ''}>{title}</th>" for title in _TITLES)
    rows = []
    for name, *numbers in _rows(profile):
        cells = "".join(f"<td{style}>{number}</td>" for number in numbers)
        rows.append(f'<tr><td style="text-align: left">{escape(name)}</td>{cells}</tr>')
    paragraphs = "".join(f"<p>{escape(sentence)}</p>" for sentence in _sentences(profile))
    return f"{paragraphs}<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _sentences(profile: Profile) -> list[str]:
    images = profile.images
    rate = (
        f", {images:,} image{'' if images == 1 else 's'}, {profile.images_per_second:,.0f} images/s" if images else ""
    )
    share = f"{100 * profile.waiting:.1f} % of the time ({profile.waited:.3f} s)"
    waited = f"The loop waited for data {share}; the rest is its own work."
    if not profile.operators:
        waited = "No reader and no operator of ndd ran in this process; `ndd.progress` tells how long a loop waits for any loader."
    sentences = [f"{profile.seconds:.3f} s{rate}", waited]
    stream = profile.stream_waited
    if stream is not None:
        sentences.append(f"On the GPU torch's stream waited {stream:.3f} s for data.")
    if profile.dropped:
        sentences.append(
            f"The trace has {len(profile.spans):,} events; {profile.dropped:,} later ones are in the table only."
        )
    return sentences


def _rows(profile: Profile) -> list[tuple[str, ...]]:
    return [
        (
            row.name,
            str(row.calls) if row.calls else "",
            str(row.ahead) if row.ahead else "",
            _ms(row.host),
            "" if row.device is None else _ms(row.device),
            _ms(row.waited),
            f"{row.nbytes / 1e6:.1f}",
        )
        for row in profile.operators
    ]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}"
