"""Finding files: paths as arguments, list files, the classes of a directory tree, names that match shell patterns."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from ndd.io.file import from_where, local_name
from ndd.io.object_store import is_remote, list_folders, single, without_query
from ndd.readers.files.file_reading import whole_file

FilePath: TypeAlias = str | bytes | os.PathLike[str]

_WORD = re.compile(r"\S+", re.ASCII)
_PIECE = re.compile(
    r"\[(?P<negated>[!^]?)(?P<inside>\]?(?:\[:[a-z]+:\]|\\.|(?!\[:[a-z]+:\])[^\]\\])*)\]|\\(?P<escaped>.)|.", re.DOTALL
)
_MEMBER = re.compile(r"\[:(?P<kind>[a-z]+):\]|(?P<first>\\.|.)(?:-(?P<last>\\.|.))?", re.DOTALL)

# The character class `[:name:]` in the brackets of a pattern, for the brackets of a regular expression.
_KINDS = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\0-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


def listed_names(reader: str, argument: str, paths: Any) -> list[str]:
    """One path or a list of them as a list of texts. RuntimeError for an empty list."""
    listed = path_texts(reader, argument, paths)
    if not listed:
        raise RuntimeError(f"{reader}: `{argument}` is an empty list")
    return listed


def path_texts(reader: str, argument: str, paths: Any) -> list[str]:
    """One path or a list of them, which may be empty, as a list of texts; TypeError for anything else."""
    listed = [paths] if isinstance(paths, str | bytes | os.PathLike) or not isinstance(paths, Iterable) else list(paths)
    return [path_text(reader, argument, path) for path in listed]


def path_text(reader: str, argument: str, path: Any) -> str:
    """A path as text; also the path in a `file://` URL. TypeError for anything else."""
    try:
        return local_name(os.fsdecode(path))
    except TypeError:
        raise TypeError(
            f"{reader}: {argument}: expected a path (str, bytes or pathlib.Path), got {path!r:.80}"
        ) from None


def named_files(reader: str, files: Any, file_list: Any, file_root: Any, file_filter: str) -> tuple[str, list[str]]:
    """A folder and names relative to it, from one of three arguments: `files`; `file_list`, a text file with one path a line;
    or `file_root`, whose files, and those one level below, match `file_filter`. RuntimeError without any of them."""
    root = None if file_root is None else path_text(reader, "file_root", file_root)
    if files is not None and file_list is not None:
        raise RuntimeError(f"{reader}: file paths come from `files` or from `file_list`, but not from both")
    if files is not None:
        names = listed_names(reader, "files", files)
    elif file_list is not None:
        listing = path_text(reader, "file_list", file_list)
        names = [line for line in read_lines(reader, listing) if line]
        root = os.path.dirname(without_query(listing)) if root is None else root
    elif root is not None:
        names = scan_nested(reader, root, name_filter(reader, "file_filter", file_filter, True))
    else:
        raise RuntimeError(f"{reader}: one of `file_root`, `files` and `file_list` is required")
    if not names:
        raise RuntimeError(f"{reader}: No files found in {root}. Does the filter match the names?")
    return root or "", names


def read_lines(reader: str, path: str) -> list[str]:
    """The lines of a text file, without their ends. RuntimeError if it cannot be read."""
    try:
        return whole_file(path).decode("utf-8", "surrogateescape").split("\n")
    except OSError as error:
        raise RuntimeError(f"{reader}: Cannot open: {path}{from_where(path)}: {error.strerror}") from error


def words_of(line: str) -> list[str]:
    """The words of a line of an index, separated by ASCII blanks. Names may contain other blanks, such as the U+202F in the
    names of screenshots on macOS."""
    return line.split() if line.isascii() else _WORD.findall(line)


MOST_BYTES = 10**18 - 1  # the largest number in an index: the sum of two fits an int64


def is_offset(word: str) -> bool:
    """Whether a word of an index is a possible number of bytes."""
    return word.isascii() and word.isdecimal() and len(word) <= len(str(MOST_BYTES))


def scan_tree(reader: str, root: str, choose_dir: Any, choose_file: Any) -> tuple[list[str], list[str], np.ndarray]:
    """The files one level below `root`: the chosen directories, the names, and the number of the directory of each name."""
    if is_remote(root):
        return _scan_objects(reader, root, choose_dir, choose_file)
    try:
        with os.scandir(root) as entries:
            folders = sorted(entry.name for entry in entries if choose_dir(entry.name) and _is_folder(entry))
    except OSError as error:
        raise RuntimeError(f"{reader}: Failed to open {root}{from_where(root)}: {error.strerror}") from error
    names: list[str] = []
    counts: list[int] = []
    paths = [os.path.join(root, folder) for folder in folders]
    for path in paths:
        try:
            with os.scandir(path) as entries:
                inside = sorted(entry.name for entry in entries if choose_file(entry.name) and not _is_folder(entry))
        except OSError as error:
            raise RuntimeError(f"{reader}: Failed to open {path}{from_where(path)}: {error.strerror}") from error
        names += inside
        counts.append(len(inside))
    places = np.repeat(np.arange(len(folders), dtype=np.int32), counts)
    return paths, names, places


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a folder. A link to itself is not: it is read as a file, and the error names it."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def count_files(folder: str, choose_file: Any) -> int:
    """The number of chosen files directly in a folder."""
    return len(_split(folder, choose_file)[0])


def _scan_objects(reader: str, root: str, choose_dir: Any, choose_file: Any) -> tuple[list[str], list[str], np.ndarray]:
    """As `scan_tree`, for a folder of an object store. All folders are requested together."""
    try:
        folders = [name for name in single(list_folders([root])).folders if choose_dir(name)]
        paths = [os.path.join(root, folder) for folder in folders]
        inside = [[name for name in single([scanned]).files if choose_file(name)] for scanned in list_folders(paths)]
    except OSError as error:
        raise RuntimeError(f"{reader}: Failed to open {error.filename}: {error.strerror or error}") from error
    places = np.repeat(np.arange(len(folders), dtype=np.int32), [len(names) for names in inside])
    return paths, [name for names in inside for name in names], places


def scan_nested(reader: str, root: str, choose_file: Any) -> list[str]:
    """The files in `root`, sorted, then those in each of its folders, sorted: names relative to `root`."""
    try:
        names, folders = _split(root, choose_file)
        for folder in folders:
            names += [os.path.join(folder, name) for name in _split(os.path.join(root, folder), choose_file)[0]]
    except OSError as error:
        raise RuntimeError(
            f"{reader}: Failed to open {error.filename}{from_where(error.filename)}: {error.strerror}"
        ) from error
    return names


def _split(folder: str, choose_file: Any) -> tuple[list[str], list[str]]:
    """The chosen files of a folder, and its folders."""
    if is_remote(folder):
        listing = single(list_folders([folder]))
        return [name for name in listing.files if choose_file(name)], listing.folders
    with os.scandir(folder) as entries:
        listed = [(entry.name, _is_folder(entry)) for entry in entries]
    files = sorted(name for name, is_folder in listed if not is_folder and choose_file(name))
    return files, sorted(name for name, is_folder in listed if is_folder)


def name_filter(reader: str, argument: str, patterns: Any, case: bool) -> Any:
    """A function that tells whether a name matches one of the glob patterns (None: every name does)."""
    if patterns is None:
        return lambda name: True
    listed = [patterns] if isinstance(patterns, str) else patterns
    if not isinstance(listed, Sequence) or not all(isinstance(pattern, str) for pattern in listed):
        raise TypeError(
            f"{reader}: {argument}: expected a pattern such as '*.jpg', or a list of them, got {patterns!r}"
        )
    if not listed:
        raise RuntimeError(f"{reader}: `{argument}` cannot be an empty list")
    endings = tuple(pattern[1:] for pattern in listed if re.fullmatch(r"\*[^*?\[\\]+", pattern))
    globs = [pattern for pattern in listed if not (pattern[:1] == "*" and pattern[1:] in endings)]
    matches = re.compile("|".join(map(glob_expression, globs)) or "(?!)", 0 if case else re.IGNORECASE).fullmatch
    if case:
        return lambda name: name.endswith(endings) or matches(name) is not None
    endings = tuple(ending.lower() for ending in endings)
    return lambda name: name.lower().endswith(endings) or matches(name) is not None


@lru_cache(1024)
def glob_expression(pattern: str) -> str:
    """A shell pattern (`*`, `?`, `[a-z]`, `[!a-z]`, `[[:digit:]]`, backslash) as a regular expression."""
    return "".join(_glob_pieces(pattern))


def _glob_pieces(pattern: str) -> Iterator[str]:
    simple = {"*": "(?s:.*)", "?": "(?s:.)"}
    for piece in _PIECE.finditer(pattern):
        if piece["inside"] is not None:
            one_of = "|".join(_bracketed(piece["inside"])) or "(?!)"
            yield f"(?!{one_of})(?s:.)" if piece["negated"] else f"(?:{one_of})"
        elif piece["escaped"] is not None:
            yield re.escape(piece["escaped"])
        else:
            yield simple.get(piece[0], re.escape(piece[0]))


def _bracketed(inside: str) -> Iterator[str]:
    """The alternatives in the brackets of a pattern. A range that ends before it begins matches nothing, nor does an unknown
    name of a character class."""
    for member in _MEMBER.finditer(inside):
        if member["kind"]:
            yield f"(?-i:[{_KINDS[member['kind']]}])" if member["kind"] in _KINDS else "(?!)"
        else:
            first = member["first"][-1]
            last = (member["last"] or first)[-1]
            if first <= last:
                yield f"[{re.escape(first)}-{re.escape(last)}]"
