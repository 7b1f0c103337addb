"""Removes the secrets of URLs from texts that are shown: names of samples and messages of errors.

A user name and password (`http://user:password@host`), the values of a query (`?X-Amz-Signature=...`, `?sig=...`) and the
fragment after `#` could give access to anybody who reads a log. The host, the path and the names of the query's fields stay.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any
from urllib.parse import quote, unquote, urlsplit

_HIDDEN = "***"
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)(://|(?i:%3A%2F%2F))([^\s<>\"]*)")
# Up to the last @ of the host part. A password may contain "/", "?", "#" or a space by mistake: then no port follows ":".
_USER = re.compile(
    r"(?i)(?<=://)(?:[^\s/?#]*@|[^\s/?#@:\[]*:(?!\d*(?:[/?#'\")\],.;:\s]|$))[^\n]{0,300}@)"
    r"|(?<=%3A%2F%2F)(?:(?!%2F|/)\S)*?%40"
)
_FIELD = re.compile(r"(?i)((?:[?&;#]|%3F|%26|%23)[^\s=&;?#<>\"'%]+)(=|%3D)((?:(?!%26)[^\s&<>\"])*)")
_NAMELESS = re.compile(r"([?&#])([^\s=&<>\"#']+)(?=[&#\s'\"<>]|$)")
_TELLING = re.compile(r"(?i)key|token|sig|secret|pass|pwd|auth|cred|session|policy|jwt|hmac")
_END = re.compile(r"[)'.,:;\]}`]*\Z")  # punctuation of a sentence or quotation around a URL
_OF_STORES = ("s3", "s3a", "gs", "az", "azure", "abfs", "abfss", "adl")  # names of files may contain ? and #


def without_secrets(text: object) -> str:
    """A text whose URLs show no user, no password, no values of a query and no fragment.

    >>> without_secrets("'https://me:word@host/a.jpg?X-Amz-Signature=5f&part=2#t' cannot be read")
    "'https://host/a.jpg?X-Amz-Signature=***&part=***' cannot be read"
    >>> without_secrets("file:///data/a.jpg?size=3")
    'file:///data/a.jpg?size=3'
    """
    shown = str(text)
    if "=" not in shown and "://" not in shown and "%" not in shown:
        return shown
    shown = _USER.sub("", shown)
    elsewhere = any(url[1].lower() != "file" for url in _URL.finditer(shown))
    shown = _URL.sub(_without_fields, shown)
    # Fields after a space in a URL, or in a URL without its host.
    return _FIELD.sub(lambda field: _hidden(field) if elsewhere or _TELLING.search(field[1]) else field[0], shown)


def _without_fields(url: re.Match[str]) -> str:
    scheme, rest = url[1].lower(), url[3]
    if scheme == "file":
        return url[0]
    rest = _FIELD.sub(_hidden, rest)
    if scheme not in _OF_STORES:
        rest = _NAMELESS.sub(lambda part: part[1] + _HIDDEN + _end(part[2]), rest)
    return url[1] + url[2] + rest


def _hidden(field: re.Match[str]) -> str:
    return field[1] + field[2] + _HIDDEN + _end(field[3])


def _end(value: str) -> str:
    place = _END.search(value)
    return place[0] if place else ""


def without_secrets_of(url: str, text: str) -> str:
    """Another library's message about a URL without secrets, even where it quotes parts of the URL, encoded or decoded."""
    parts = urlsplit(url)
    secrets = [field.partition("=")[2] or field for field in re.split("[&;]", parts.query)] + [parts.fragment]
    user = parts.netloc.rpartition("@")[0]
    secrets += [user, *user.split(":", 1)]
    forms = {form for secret in secrets for form in (secret, unquote(secret), quote(unquote(secret), safe=""))}
    text = text.replace(url, without_secrets(url))
    for form in sorted(forms, key=len, reverse=True):
        if len(form) > 3:  # a shorter one may be a part of ordinary words
            text = text.replace(form, _HIDDEN)
    return without_secrets(text)


def error_text(error: BaseException) -> str:
    """An error's message, without secrets. The `__str__` of foreign errors may fail."""
    try:
        return without_secrets(str(error))
    except Exception as failure:
        return f"its text cannot be shown ({type(failure).__name__})"


def redact(error: BaseException) -> BaseException:
    """The error itself. Its text and the texts of its causes show no secrets from now on."""
    seen: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:
        link = chain.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        chain += [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]
        _clear(link)
    return error


def _clear(error: BaseException) -> None:
    args = tuple(without_secrets(part) if type(part) is str else part for part in error.args)
    changes: dict[str, Any] = {} if args == error.args else {"args": args}
    if hasattr(error, "__notes__"):
        changes["__notes__"] = [without_secrets(note) for note in error.__notes__]
    for name in ("filename", "filename2", "strerror") if isinstance(error, OSError) else ():
        value = getattr(error, name)
        if type(value) is str and without_secrets(value) != value:
            changes[name] = without_secrets(value)
    for name, value in changes.items():
        with contextlib.suppress(AttributeError):  # some classes of errors cannot be changed
            setattr(error, name, value)
