"""Builds the site: `python notebooks/site/build.py` (extra `docs`) writes it to `build/site/html`, or says which link is broken.

Pages of the reference, pictures of the gallery and executed notebooks become Markdown below `build/site/pages`, beside the text
pages; then Zensical makes HTML of them.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

from executed import page as notebook_page
from gallery import Gallery
from navigation import pages_of
from reference import Reference

_HERE = Path(__file__).parent
_DOCS = _HERE.parent
_OUT = _DOCS.parent / "build" / "site"
_PICTURES = ("ops-image", "ops-color", "ops-filter")  # the families that the gallery shows first
_NOTEBOOKS = {path.stem for path in _DOCS.glob("*.ipynb")}


def main() -> int:
    """Writes the pages and calls the generator; its exit code, or 1 if an example of the gallery fails."""
    shutil.rmtree(_OUT, ignore_errors=True)
    gallery = Gallery()
    reference = Reference(_torchvision_names(), gallery.figure)
    for path, content in _files(reference, gallery).items():
        file = _OUT / "pages" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    for file in (_HERE / "extra.css", _DOCS / "batch.jpg"):
        shutil.copy(file, _OUT / "pages")
    configuration = _configuration(reference)
    (_OUT / "mkdocs.yml").write_text(configuration, encoding="utf-8")
    for name, text in gallery.failed.items():
        print(f"gallery: {name}: {text}", file=sys.stderr)
    lost = sorted(set(_pages(_OUT / "pages")) - set(pages_of(configuration)))
    for path in lost:
        print(f"no entry in the navigation: {path}", file=sys.stderr)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "-f", str(_OUT / "mkdocs.yml")]
    built = subprocess.run(command, check=False).returncode
    broken = [] if built else _broken(_OUT / "html")
    for link in broken:
        print(f"broken: {link}", file=sys.stderr)
    return built or int(bool(gallery.failed or lost or broken))


def _broken(html: Path) -> list[str]:
    """Links and pictures that lead to no file. The generator checks Markdown, not HTML in it, and a server forgives too many `..`
    at its root."""
    broken = []
    for page in html.rglob("index.html"):
        for link in set(re.findall(r'(?:src|href)="([^"#?:]+)["#?]', page.read_text(encoding="utf-8"))):
            path = (page.parent / link).resolve()
            if not (path.is_relative_to(html.resolve()) and path.exists()):
                broken.append(f"{page.relative_to(html)}: {link}")
    return broken


def _pages(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*.md")]


def _files(reference: Reference, gallery: Gallery) -> dict[str, str | bytes]:
    """All files of the site by path: text pages, notebooks, the reference, pictures."""
    files: dict[str, str | bytes] = {path: (_DOCS / path).read_text(encoding="utf-8") for path in _pages(_DOCS)}
    files["gallery.md"] = files["gallery.md"].replace("<!-- tiles -->", _tiles(reference, gallery))
    files["operators.md"] = re.sub(
        r"\[`([\w.]+)`\]\(\.\./ndd/[^)]*\)", lambda match: _entry_link(match[1], reference), files["operators.md"]
    )
    for stem in _NOTEBOOKS:
        files[f"{stem}.md"] = notebook_page(_DOCS / f"{stem}.ipynb")
        files[f"{stem}.ipynb"] = (_DOCS / f"{stem}.ipynb").read_bytes()
    files["reference/index.md"] = reference.index()
    files |= {f"reference/{page}.md": reference.page(page) for page in reference.pages}
    files = {path: _linked(path, content) for path, content in files.items()}
    return files | gallery.files


def _linked(path: str, content: str | bytes) -> str | bytes:
    """Links to notebooks lead to their pages, pictures are found from there; the repository's own files have no links."""
    if not isinstance(content, str):
        return content
    # Comments that stand in one column would lie beyond the edge of the page.
    content = re.sub(r"(?s)```python\n.*?```", lambda found: re.sub(r"(?m)(?<=\S) {3,}# ", "  # ", found[0]), content)
    content = re.sub(r"<!-- docstring: ([\w.]+) -->", lambda match: _docstring(match[1]), content)
    content = re.sub(r"<!-- text: ([\w./]+) -->", lambda match: _without_title(match[1]), content)
    content = re.sub(r"\[([^\]]+)\]\((?:\.\./)+(?:\.github|ndd|README)[^)]*\)", r"\1", content)
    content = re.sub(r"(\]\((?!https?:)[^)\s]*?)\.ipynb\)(?!\{ \.download)", r"\1.md)", content)
    # The generator changes `src` from the place of the Markdown file to that of the page.
    return content.replace('src="/gallery/', f'src="{"../" * path.count("/")}gallery/')


def _docstring(module: str) -> str:
    text = inspect.getdoc(importlib.import_module(module)) or ""
    return f"```text\n{text}\n```"


def _without_title(path: str) -> str:
    return (_DOCS.parent / path).read_text(encoding="utf-8").partition("\n")[2]


def _entry_link(name: str, reference: Reference) -> str:
    path = name if name.startswith("ndd.") else f"ndd.{name}"
    page = reference.place.get(path)
    return f"[`{name}`](reference/{page}.md#{path})" if page else f"`{name}`"


def _tiles(reference: Reference, gallery: Gallery) -> str:
    parts = []
    for page in sorted(
        reference.pages, key=lambda page: _PICTURES.index(page) if page in _PICTURES else len(_PICTURES)
    ):
        names = [path.removeprefix("ndd.") for path, _ in reference.pages[page]]
        tiles = [gallery.thumbnail(name, f"reference/{page}/#ndd.{name}") for name in names if name in gallery.figures]
        if tiles:
            parts.append(f"## {reference.titles[page]}\n")
            parts.append('<div class="tiles">' + "".join(tiles).replace("\n", "") + "</div>\n")
    return "\n".join(parts)


def _torchvision_names() -> dict[str, str]:
    """torchvision's names by ndd's, from the tables of two pages."""
    names: dict[str, list[str]] = {}
    pages = (_DOCS / "from" / "torchvision.md", _DOCS / "torchvision_names.md")
    for line in "\n".join(page.read_text(encoding="utf-8") for page in pages).splitlines():
        cells = line.strip("|").split("|")
        if line.startswith("| `") and len(cells) >= 2:
            for name in re.findall(r"ndd\.([\w.]+)", cells[1]):
                names.setdefault(name, []).append(cells[0].strip())
    return {name: ", ".join(dict.fromkeys(theirs)) for name, theirs in names.items()}


def _configuration(reference: Reference) -> str:
    """`mkdocs.yml` with the reference's pages in its navigation."""
    text = (_HERE / "mkdocs.yml").read_text(encoding="utf-8").replace(".ipynb", ".md")
    pages = sorted(reference.pages, key=lambda page: reference.titles[page].lower())
    entries = ["reference/index.md", *(f'"{reference.titles[page]}": reference/{page}.md' for page in pages)]
    return text.replace("Reference: reference/\n", "Reference:\n" + "".join(f"      - {entry}\n" for entry in entries))


if __name__ == "__main__":
    sys.exit(main())
