"""Objects of S3, Google Cloud Storage, Azure and web servers, read like files: whole, in ranges, by folder.

`web_server.py` reads from web servers. This is the only importer of obstore, the client for the others (in Rust; on two cores
it reads 4,300 objects of 100 kB in a second over 16 connections, s3fs 160). Requests run on a few threads of this process, the
*connections*, so that Ctrl-C reaches a waiting caller. Errors are `OSError`s that name the object.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from ndd._execution.fork import around_fork, fork_lock
from ndd._execution.memoize import Memoized
from ndd._tensor.memory import host_empty
from ndd._tensor.secrets import without_secrets, without_secrets_of
from ndd.installation import install_command
from ndd.io import web_server
from ndd.io.connections import Connections
from ndd.io.object_cache import ObjectCache

_URL = re.compile(r"(s3|s3a|gs|az|azure|abfs|abfss|adl|https?)://([^/]+)/?(.*)", re.DOTALL)
_STRONG = re.compile(r'"[^"]*"')  # a strong ETag, which identifies the exact bytes; weak ones (W/"...") never match
_BEYOND = (
    "(?i)416|wanted range|out of range|satisfiable"  # in the error for a range that begins after the end of the object
)
_VARIABLE = "NDD_OBJECT_STORE"
_DEFAULTS: dict[str, Any] = {
    "cache_dir": None,
    "cache_size": 10 << 30,
    "connections": 32,
    "retries": 5,
    "timeout": 30.0,
}


Environment = tuple[tuple[str, str], ...]


class Status(NamedTuple):
    """The facts that a store gives about an object."""

    size: int
    version: str
    """Its ETag, or the time of its last change if there is none."""


class Entries(NamedTuple):
    """The direct entries of a folder, sorted."""

    files: list[str]
    folders: list[str]


@contextlib.contextmanager
def _restored(before: str | None) -> Iterator[None]:
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before


def object_store(
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    cache_size: int = 10 << 30,
    connections: int = 32,
    retries: int = 5,
    timeout: float = 30.0,
    **client_options: Any,
) -> contextlib.AbstractContextManager[None]:
    """Sets how objects are read, in this process and its children; in a `with` statement until the end of the block.

    Wherever ndd takes a path it also takes `s3://bucket/key`, `gs://bucket/key`, `az://container/key` and
    `http(s)://host/path`. The client (obstore) finds credentials, region and endpoint itself: in
    `AWS_ACCESS_KEY_ID`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME` and similar
    variables, in web identities and in the metadata services of the clouds. This function is not needed for that.

    The URL of a web server is requested as it is, with its query: presigned URLs work. The user and password of
    `http://user:password@host` go to that server only, not to the target of a redirect. Redirects from https to http, and from
    outside to an address of this machine or its network, are refused. Errors, warnings and lists of skipped samples show URLs
    without user, password, values of the query and fragment; `source_info` has the whole URL.

    Args:
        cache_dir: a folder that caches objects for later epochs, runs and other processes. Cached objects are not checked
            for changes; the parts of containers are read again when the container has changed. Objects that cannot be
            written (a full disk) are not cached. Default: no cache, or `NDD_OBJECT_CACHE`.
        cache_size: the limit of the cache in bytes; beyond it the least recently used objects are removed. Default: 10 GiB,
            or `NDD_OBJECT_CACHE_SIZE`.
        connections: the number of requests that this process runs at once.
        retries: the number of times that a request without a response, with a broken one, or with a 5xx is repeated.
        timeout: seconds for one request.
        client_options: options of the stores of obstore: `region`, `endpoint`, `skip_signature=True` (public buckets),
            `request_payer=True` (buckets whose readers pay), `virtual_hosted_style_request` and others. Child processes get
            them in the environment variable `NDD_OBJECT_STORE`, so pass secrets through the client's own variables.

    Raises ValueError for numbers out of range.

    >>> import ndd
    >>> with ndd.io.object_store(connections=8, skip_signature=True):
    ...     reader = ndd.readers.File(files=["s3://bucket/a.jpg"])  # opened at the first sample
    """
    settings = {
        "cache_dir": None if cache_dir is None else os.path.abspath(os.fsdecode(cache_dir)),
        "cache_size": cache_size,
        "connections": connections,
        "retries": retries,
        "timeout": timeout,
    }
    for name, least in (("cache_size", 0), ("connections", 1), ("retries", 0), ("timeout", 0.001)):
        value = settings[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
            raise ValueError(f"object_store: {name}: expected a number from {least}, got {value!r}")
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = json.dumps({**settings, **client_options}, default=str, sort_keys=True)
    return _restored(before)


def is_remote(path: str) -> bool:
    """Whether a path is a URL of an object.

    >>> is_remote("s3://bucket/a.jpg"), is_remote("/data/a.jpg")
    (True, False)
    """
    return "://" in path and _URL.match(path) is not None


def without_query(path: str) -> str:
    """The URL of a file on a web server without its query and fragment; any other path unchanged.

    >>> without_query("https://host/a.jpg?sig=5f"), without_query("s3://bucket/a?.jpg")
    ('https://host/a.jpg', 's3://bucket/a?.jpg')
    """
    return re.split("[?#]", path, maxsplit=1)[0] if _is_web(path) else path


def connections() -> int:
    """The number of requests that run at once."""
    return int(_settings(_environment())["connections"])


def read_objects(urls: Sequence[str]) -> list[Any]:
    """The bytes of each object, u8, or its `OSError`. As many requests run at once as there are connections."""
    return _asked(_cached_range, [(url, 0, -1, "", None) for url in urls])


def read_object_ranges(
    urls: Sequence[str],
    offsets: Any,
    sizes: Any,
    versions: Sequence[str] | None = None,
    targets: Sequence[np.ndarray] | None = None,
) -> list[Any]:
    """`sizes[i]` bytes (-1: to the end) at `offsets[i]` of object `urls[i]`, u8, or its `OSError`.

    Args:
        versions: the known versions of the objects, so that no data of another version comes from the cache, or from a store
            with ETags: an object that has been replaced is an error.
        targets: arrays for the bytes, u8 of these sizes. Default: new arrays from the pool of host memory.
    """
    tags, places = versions or [""] * len(urls), targets or [None] * len(urls)
    return _asked(_cached_range, list(zip(urls, map(int, offsets), map(int, sizes), tags, places, strict=True)))


def object_beginnings(urls: Sequence[str], sizes: Sequence[int]) -> list[Any]:
    """A `Status` and the first bytes (u8; `sizes[i]`, or all) of each object, or its `OSError`. A store gets one request for
    both; the cache is not used."""
    return _asked(_beginning, list(zip(urls, map(int, sizes), strict=True)))


def object_statuses(urls: Sequence[str]) -> list[Any]:
    """A `Status`, or an `OSError`, for each object."""
    return _asked(_status, [(url,) for url in urls])


def list_folders(urls: Sequence[str]) -> list[Any]:
    """`Entries`, or an `OSError`, for each folder; an empty folder does not exist."""
    return _asked(_entries, [(url,) for url in urls])


def single(results: list[Any]) -> Any:
    """The only result; raises its error."""
    if isinstance(results[0], BaseException):
        raise results[0]
    return results[0]


def _asked(do: Any, arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Calls `do(environment, *a)` for each of the arguments, in order."""
    environment = _environment()
    return _every_connection(_settings(environment)["connections"]).each(do, [(environment, *a) for a in arguments])


# The requests, on the threads of the connections


def _cached_range(
    environment: Environment, url: str, offset: int, size: int, version: str, target: np.ndarray | None
) -> np.ndarray:
    cache = _cache(environment)
    if cache is None:
        return _read(environment, url, offset, size, version, target)
    key = f"{url}\0{version}\0{offset}\0{size}"
    cached = cache.get(key, target)
    if cached is None:
        cached = _read(environment, url, offset, size, version, target)
        cache.put(key, cached)
    return cached


def _read(
    environment: Environment, url: str, offset: int, size: int, version: str, target: np.ndarray | None
) -> np.ndarray:
    """Reads into pooled memory, because the client's memory is read-only and not aligned."""
    if size == 0:
        return host_empty(0, np.uint8)
    data = (_read_web if _is_web(url) else _read_store)(environment, url, offset, size, version)
    if 0 <= size != len(data):
        text = f"The object ends too early (expected {size} bytes at {offset}, got {len(data)})"
        raise OSError(errno.EIO, text, without_secrets(url))
    target = host_empty(len(data), np.uint8) if target is None else target
    if len(data):
        np.copyto(target, np.frombuffer(data, np.uint8))
    return target


def _read_store(environment: Environment, url: str, offset: int, size: int, version: str) -> Any:
    store, key = _store_of(environment, url)
    with _named(url):
        options: dict[str, Any] = {"if_match": version} if _STRONG.fullmatch(version) else {}
        if size >= 0:
            options["range"] = (offset, offset + size)
        elif offset:
            options["range"] = {"offset": offset}
        try:
            return _client().get(store, key, options=options).bytes()
        except Exception as error:
            if size < 0 or not re.search(_BEYOND, str(error)):
                raise
            return b""  # the range begins after the end of the object


def _is_web(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _web_settings(environment: Environment) -> Any:
    settings = _settings(environment)
    return web_server.Settings(settings["retries"], settings["timeout"])


def _read_web(environment: Environment, url: str, offset: int, size: int, version: str) -> Any:
    return web_server.read(url, offset, size, version, _web_settings(environment))


def _status(environment: Environment, url: str) -> Status:
    if _is_web(url):
        return Status(*web_server.status(url, _web_settings(environment)))
    store, key = _store_of(environment, url)
    with _named(url):
        return _status_of(_client().head(store, key))


def _beginning(environment: Environment, url: str, size: int) -> tuple[Status, np.ndarray]:
    if not _is_web(url) and size > 0:
        store, key = _store_of(environment, url)
        with _named(url):
            try:
                got = _client().get(store, key, options={"range": (0, size)})
                return _status_of(got.meta), np.frombuffer(got.bytes(), np.uint8)
            except Exception as error:
                if not re.search(_BEYOND, str(error)):
                    raise  # otherwise the object is empty
    status = _status(environment, url)
    return status, _read(environment, url, 0, min(size, status.size), status.version, None)


def _status_of(head: Any) -> Status:
    return Status(int(head["size"]), str(head.get("e_tag") or head.get("last_modified")))


def _entries(environment: Environment, url: str) -> Entries:
    if _is_web(url):
        raise OSError(errno.ENOTSUP, "A web server cannot be asked what it has: name the files", without_secrets(url))
    store, key = _store_of(environment, url, listed=True)
    prefix = key.rstrip("/")
    with _named(url):
        listing = _client().list_with_delimiter(store, prefix or None)
    start = len(prefix) + 1 if prefix else 0
    files = [entry["path"][start:] for entry in listing["objects"]]
    folders = [path.rstrip("/")[start:] for path in listing["common_prefixes"]]
    if not files and not folders:
        raise FileNotFoundError(errno.ENOENT, "No such folder: no object's name begins with it", without_secrets(url))
    return Entries(sorted(name for name in files if name), sorted(name for name in folders if name))


@contextlib.contextmanager
def _named(url: str) -> Iterator[None]:
    """Converts the client's exceptions to an `OSError` that names the object."""
    try:
        yield
    except OSError as error:
        raise _sentence(error, url) from None
    except Exception as error:
        if isinstance(error, ValueError) and "Could not parse path" in str(error):
            text = "The client cannot ask for a name with a line break, or with . or .. between two /"
            raise OSError(errno.EINVAL, text, without_secrets(url)) from None
        if type(error).__module__.partition(".")[0] != "obstore":
            raise
        raise _sentence(error, url) from None


def _sentence(error: Exception, url: str) -> OSError:
    message = without_secrets_of(url, _told(error))
    url = without_secrets(url)
    bucket = url.split("/")[2]
    kind = type(error).__name__
    if "NoSuchBucket" in message or "ContainerNotFound" in message or "bucket does not exist" in message:
        return FileNotFoundError(errno.ENOENT, f"No such bucket: {bucket}", url)
    if isinstance(error, FileNotFoundError) or kind == "NotFoundError":
        return FileNotFoundError(errno.ENOENT, "No such object", url)
    if "object with invalid path" in message:
        text = "The client cannot list a name with //, or with . or .. between two /: name the files"
        return OSError(errno.EINVAL, f"{text} ({message[:200]})", url)
    if kind == "PreconditionError":
        return OSError(errno.ESTALE, "The object was replaced since it was opened: make the reader anew", url)
    denied = kind in ("PermissionDeniedError", "UnauthenticatedError") or re.search(
        r"\b40[13] (Forbid|Unauth)", message
    )
    if "169.254.169.254" in message or "metadata.google.internal" in message:
        text = "No credentials: none in the environment, and this machine has none of a cloud (skip_signature=True if public)"
        return PermissionError(errno.EACCES, f"{text} ({message[:200]})", url)
    if isinstance(error, PermissionError) or denied:
        return PermissionError(
            errno.EACCES, f"Forbidden: the credentials in use may not read it ({message[:300]})", url
        )
    if re.search(r"(?i)timed ?out", str(error)):
        return TimeoutError(errno.ETIMEDOUT, f"The store did not answer in time ({message[:300]})", url)
    return ConnectionError(errno.ECONNABORTED, f"The store could not be read ({message[:600]})", url)


def _told(error: Exception) -> str:
    """The client's text. For a response in XML, which may quote the signed request, only its code and message."""
    text = str(error).partition("\n\nDebug source")[0].strip()
    parts = re.findall(r"<(?:Code|Message)>([^<]{1,300})", text)
    return text.partition("<")[0] + ": ".join(parts) if parts else text


# State of a process


def _environment() -> Environment:
    """The variables that settings and credentials depend on. A changed environment gets new settings and stores."""
    names = [n for n in os.environ if n.startswith(("AWS_", "GOOGLE_", "AZURE_", "NDD_OBJECT_"))]
    return tuple([(n, os.environ.get(n, "")) for n in names])  # another thread may unset one


def _made_settings(environment: Environment) -> dict[str, Any]:
    variables = dict(environment)
    settings = {**_DEFAULTS, **json.loads(variables.get(_VARIABLE) or "{}")}
    folder = variables.get("NDD_OBJECT_CACHE")
    if settings["cache_dir"] is None and folder:
        settings["cache_dir"] = os.path.abspath(folder)
        settings["cache_size"] = int(variables.get("NDD_OBJECT_CACHE_SIZE") or settings["cache_size"])
    return settings


_settings = Memoized(_made_settings, limit=8)
_every_connection = Memoized(Connections, limit=4)
_every_cache = Memoized(ObjectCache, limit=4)


def _cache(environment: Environment) -> ObjectCache | None:
    settings = _settings(environment)
    return _every_cache(settings["cache_dir"], settings["cache_size"]) if settings["cache_dir"] else None


def _store_of(environment: Environment, url: str, listed: bool = False) -> tuple[Any, str]:
    """The client's store for a URL, and the object's name in it."""
    parts = _URL.match(url)
    if parts is None:
        raise OSError(errno.EINVAL, "Expected a URL of s3, gs or az", without_secrets(url))
    scheme, place, key = parts.groups()
    segments = key.split("/")
    odd = next((k for k in range(len(segments) - 2, -1, -1) if not segments[k]), None)  # the last empty one
    if odd is None or listed:
        return _stores(f"{scheme}://{place}", environment), key
    if scheme not in ("s3", "s3a"):
        raise OSError(
            errno.EINVAL, "Names with // or a / at the beginning can be read from S3 only", without_secrets(url)
        )
    return _stores(f"{scheme}://{place}", environment, "/".join(segments[: odd + 1])), "/".join(segments[odd + 1 :])


def _made_store(root: str, environment: Environment, beginning: str | None = None) -> Any:
    """The client's store for the objects of a bucket; with `beginning`, for those whose names begin with it and a "/".

    The client splits names at "/" and refuses empty parts, which S3 allows. They may be in the URL of the server."""
    settings = _settings(environment)
    options = {name: value for name, value in settings.items() if name not in _DEFAULTS}
    if beginning is not None:
        options |= _server_of(root.partition("://")[2], options, dict(environment), beginning)
    seconds = timedelta(seconds=settings["timeout"])
    client: dict[str, Any] = {
        "timeout": seconds,
        "connect_timeout": min(seconds, timedelta(seconds=10)),
        "allow_http": True,
    }
    retry: Any = {"max_retries": settings["retries"], "retry_timeout": timedelta(seconds=170)}
    _client()
    from obstore.store import from_url

    with _named(f"{root}/"):
        try:
            return from_url(root, config=options or None, client_options=client, retry_config=retry)  # type: ignore[call-overload]
        except BaseException as error:
            # A PanicException is not an Exception.
            if not isinstance(error, TypeError) and type(error).__name__ != "PanicException":
                raise
            names = ", ".join(map(repr, options))
            raise ValueError(f"object_store: the client does not take {names} as they are: {error}") from None


def _server_of(bucket: str, options: dict[str, Any], environment: dict[str, str], beginning: str) -> dict[str, Any]:
    """The client's options to request names with this beginning from a bucket."""

    def setting(*names: str) -> str:
        plain = [options.get(form) for name in names for form in (name, f"aws_{name}")]
        return next((str(v) for v in [*plain, *(environment.get(f"AWS_{name.upper()}") for name in names)] if v), "")

    region = setting("region", "default_region") or "us-east-1"
    hosted = setting("virtual_hosted_style_request").lower() in ("true", "1", "yes")
    server = setting("endpoint", "endpoint_url_s3", "endpoint_url")
    if not server:
        server = f"https://s3.{region}.amazonaws.com/{bucket}"
    elif not hosted:
        server = f"{server.rstrip('/')}/{bucket}"
    kept = {"endpoint": f"{server.rstrip('/')}/{quote(beginning)}", "virtual_hosted_style_request": True}
    return kept if options.get("region") or options.get("aws_region") else {**kept, "region": region}


_stores = Memoized(_made_store, limit=64)


def _imported() -> Any:
    global _library
    try:
        with fork_lock:
            if _stale:
                _copy_library()
            import obstore

            _library = _library or sys.modules["obstore._obstore"].__file__
    except ImportError as error:
        raise RuntimeError(f"Objects of a store are read with obstore: {install_command('remote')} ({error})") from None
    return obstore


_client = Memoized(_imported)
_library: str | None = None  # the file of obstore's extension
_stale = False  # whether the loaded library belongs to the parent of this process
_of_parents: list[Any] = []  # modules that a child must not destroy


def _forked() -> None:
    global _library, _stale
    loaded = sys.modules.get("obstore._obstore")
    if loaded is not None:
        _stale, _library = True, _library or loaded.__file__


around_fork(in_child=_forked)


def _copy_library() -> None:
    """Loads obstore's extension again, from memory. Its threads started in the parent and do not exist here, and a loaded
    library is not initialised again, so a request would wait forever. This takes 0.1 s, once in a process."""
    global _stale
    name = "obstore._obstore"
    old = [module_name for module_name in sys.modules if module_name.partition(".")[0] == "obstore"]
    _of_parents.extend(sys.modules.pop(module_name) for module_name in old)
    data = Path(_library or "").read_bytes()
    if hasattr(os, "memfd_create"):
        handle = os.memfd_create("obstore")
        path = f"/proc/self/fd/{handle}"
    else:  # macOS, where processes are not forked by default
        handle, path = tempfile.mkstemp(".so")
    with os.fdopen(handle, "wb") as copied:
        copied.write(data)
        copied.flush()
        loader = ExtensionFileLoader(name, path)
        module = module_from_spec(spec_from_loader(name, loader))  # type: ignore[arg-type]
        sys.modules[name] = module
        loader.exec_module(module)
    _stale = False
