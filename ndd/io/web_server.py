"""Reads files of web servers (`http://`, `https://`): complete, in ranges, and their sizes.

A URL is requested unchanged, with its query, because presigned URLs depend on it. Only GET is used, because a signature is
valid for one method. The target of a redirect is trusted less than the URL's own server: another server gets neither user name
nor password, and redirects from outside to an address of this machine or of its network are refused.
"""

from __future__ import annotations

import base64
import errno
import functools
import http.client
import ipaddress
import math
import random
import re
import socket
import ssl
import threading
import time
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from ndd._execution.fork import around_fork
from ndd._tensor.secrets import redact, without_secrets, without_secrets_of

_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 10
_AGAIN = (408, 425, 429, 500, 502, 503, 504)  # the next attempt may succeed
_PIECE = 1 << 20
_SMALL = 1 << 16  # bytes: reading them to the end is cheaper than a new connection
_SECONDS_TO_CONNECT = 10.0
_LONGEST_PAUSE = 15.0
_PARTS = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.DOTALL | re.IGNORECASE)
_RANGE = re.compile(r"bytes (?:(\d{1,18})-\d{1,18}|\*)/(\d{1,18}|\*)")
_STRONG = re.compile(r'"[^"]*"')
_local = threading.local()  # the open connections of each thread
_warned: set[tuple[str, str]] = set()


class Settings(NamedTuple):
    """The number of attempts and the time limit, in seconds, of a request."""

    retries: int
    timeout: float


class Zone(IntEnum):
    """How close to this machine an address is."""

    PUBLIC = 0
    PRIVATE = 1
    LOOPBACK = 2
    LINK_LOCAL = 3


class _Refused(OSError):
    """An error that a retry cannot fix."""


class _TryAgain(OSError):
    """A response that asks to try again later."""


class _Server(NamedTuple):
    scheme: str
    host: str
    port: int


class _Target(NamedTuple):
    server: _Server
    path: str
    authorization: str | None

    @classmethod
    def of(cls, url: str) -> _Target:
        parts = _PARTS.match(url)
        try:
            place = urlsplit(f"//{parts[2]}" if parts else "")
            host, port = place.hostname, place.port
        except ValueError:
            host = port = None
        if parts is None or not host or re.search(r"[\s\0]", host):
            raise _Refused(errno.EINVAL, "Expected a URL such as https://host/path")
        scheme = parts[1].lower()
        server = _Server(scheme, host, port if port is not None else 443 if scheme == "https" else 80)
        user = parts[2].rpartition("@")[0]
        path = parts[3] if parts[3].startswith("/") else f"/{parts[3]}"
        encoded = quote(
            re.sub("%(?![0-9A-Fa-f]{2})", "%25", path).encode("utf-8", "surrogateescape"), "%/:=&?~+!$,;'@()*|"
        )
        return cls(server, encoded, _basic(user) if user else None)


def read(url: str, offset: int, size: int, version: str, settings: Settings) -> bytearray:
    """Reads `size` bytes (-1: to the end) at `offset`, fewer if the file ends. OSError that names the file.

    `version` is an ETag: a file whose ETag has changed is an error, if the server reports it."""
    headers = {"If-Match": version} if _STRONG.fullmatch(version) else {}
    if size >= 0:
        headers["Range"] = f"bytes={offset}-{offset + size - 1}"
    elif offset:
        headers["Range"] = f"bytes={offset}-"

    def taken(answer: http.client.HTTPResponse) -> bytearray:
        if answer.status == 416:
            return bytearray()  # the range begins after the end of the file
        _check(answer)
        if headers.get("If-Match") and answer.getheader("ETag", version) != version:
            raise _replaced()
        if "Range" in headers and answer.status != 206 and offset:
            raise _Refused(errno.ENOTSUP, "The web server gives whole files only, no ranges of them: download it first")
        if answer.status == 206 and offset != _range(answer)[0]:
            raise _Refused(errno.EIO, "The web server answers with another range than requested")
        return _body(answer, size if size >= 0 else None)

    return _tried(url, headers, taken, settings)


def status(url: str, settings: Settings) -> tuple[int, str]:
    """The size of a file, and its ETag or the time of its last change. OSError that names it."""

    def taken(answer: http.client.HTTPResponse) -> tuple[int, str]:
        if answer.status != 416:
            _check(answer)
        size = answer.length if answer.status == 200 else _range(answer)[1]
        if size is None or not 0 <= size < 1 << 62:
            raise _Refused(errno.EIO, "The web server does not say how large the file is")
        if (answer.length or math.inf) <= _SMALL:
            _body(answer, None)
        return size, str(answer.getheader("ETag") or answer.getheader("Last-Modified"))

    return _tried(url, {"Range": "bytes=0-0"}, taken, settings)


def _tried(url: str, headers: dict[str, str], take: Any, settings: Settings) -> Any:
    """`take(answer)`, with retries after a missing or broken response."""
    with _named(url):
        target, pause = _Target.of(url), 0.1
        for attempt in range(settings.retries + 1):
            try:
                return _asked(target, headers, take, time.monotonic() + settings.timeout)
            except (_Refused, ssl.SSLCertVerificationError):
                raise
            except (OSError, http.client.HTTPException):
                if attempt == settings.retries:
                    raise
            time.sleep(random.uniform(pause / 2, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)
    raise AssertionError


def _asked(target: _Target, headers: dict[str, str], take: Any, deadline: float) -> Any:
    """`take(answer)` for the response of the server at the end of all redirects."""
    first = origin = None
    for _ in range(_MOST_REDIRECTS + 1):
        with _answered(target, headers, origin, deadline) as (connection, answer):
            if first is None:
                first, origin = target, connection.zone
            _warn(first.server.host, target.server.host)
            if answer.status not in _REDIRECTS:
                return take(answer)
            following = _followed(target, answer.getheader("Location"))
            _body(answer, _SMALL)
        if following.server != first.server:
            following = following._replace(authorization=None)
        elif following.authorization is None:
            following = following._replace(authorization=first.authorization)
        target = following
    raise _Refused(errno.ELOOP, f"The web server hands the request on more than {_MOST_REDIRECTS} times")


def _followed(target: _Target, location: str | None) -> _Target:
    """The target of a redirect, without user names in it."""
    if not location:
        raise _Refused(errno.EIO, "The web server hands the request on without saying where to")
    here = f"{target.server.scheme}://{_bracketed(target.server.host)}:{target.server.port}{target.path}"
    there = urljoin(here, location.encode("latin-1", "replace").decode("utf-8", "surrogateescape"))
    scheme = there.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        raise _Refused(
            errno.EACCES, f"The web server hands the request on to a URL of {scheme[:20]}, which is not followed"
        )
    if target.server.scheme == "https" and scheme == "http":
        raise _Refused(errno.EACCES, "The web server hands the request on from https to http, which is not followed")
    return _Target.of(there)._replace(authorization=None)


def _warn(host: str, other: str) -> None:
    if host != other and (host, other) not in _warned:
        _warned.add((host, other))
        warnings.warn(f"{host} hands requests on to {other}, and files are read from there", UserWarning, stacklevel=2)


@contextmanager
def _answered(
    target: _Target, headers: dict[str, str], origin: Zone | None, deadline: float
) -> Iterator[tuple[_Connection, http.client.HTTPResponse]]:
    """The response to one request. If the server has closed an idle connection, a new one is opened. A connection is reused if
    its response has been read to the end."""
    kept: dict[_Server, _Connection] = _local.__dict__.setdefault("kept", {})
    sent = {"User-Agent": "ndd", **headers}
    if target.authorization:
        sent["Authorization"] = target.authorization
    connection = kept.pop(target.server, None)
    while True:
        fresh = connection is None
        connection = connection or _Connection.to(target.server, origin, deadline)
        try:
            connection.check(origin)
            connection.wait_until(deadline)
            connection.request("GET", target.path, headers=sent)
            answer = connection.getresponse()
        except (ConnectionError, http.client.BadStatusLine):
            connection.close()
            if fresh:
                raise
            connection = None
        except BaseException:
            connection.close()
            raise
        else:
            break
    try:
        yield connection, answer
    finally:
        if answer.isclosed() and not answer.will_close:
            if len(kept) >= 4:
                kept.pop(next(iter(kept))).close()
            kept[target.server] = connection
        else:
            answer.close()
            connection.close()


def _body(answer: http.client.HTTPResponse, limit: int | None) -> bytearray:
    """The body of a response, up to a limit."""
    data = bytearray()
    while limit is None or len(data) < limit:
        piece = answer.read(_PIECE if limit is None else min(_PIECE, limit - len(data)))
        if not piece:
            break
        data += piece
    if answer.length and (limit is None or len(data) < limit):
        raise ConnectionError(f"The answer ends {answer.length} bytes too early")
    return data


def _range(answer: http.client.HTTPResponse) -> tuple[int | None, int | None]:
    """The offset of the part of a file in a response, and the size of the file."""
    stated = _RANGE.match(answer.getheader("Content-Range", ""))
    if stated is None:
        return None, None
    return (None if stated[1] is None else int(stated[1])), (None if stated[2] == "*" else int(stated[2]))


def _check(answer: http.client.HTTPResponse) -> None:
    """OSError for a response that does not contain the file."""
    code = answer.status
    if code in (200, 206):
        return
    message = re.search(rb"<Message>([^<]{1,200})", bytes(_body(answer, 4096)))
    reason = f"{code} {answer.reason}" + (f": {message[1].decode(errors='replace')}" if message else "")
    if code in (404, 410):
        raise FileNotFoundError(errno.ENOENT, "No such object")
    if code in (401, 403, 407):
        raise _Refused(errno.EACCES, f"Forbidden: the credentials in use may not read it ({reason})")
    if code == 412:
        raise _replaced()
    if code in _AGAIN or code >= 500:
        raise _TryAgain(reason)
    raise _Refused(errno.EIO, f"The web server refuses the request ({reason})")


def _replaced() -> OSError:
    return _Refused(errno.ESTALE, "The object was replaced since it was opened: make the reader anew")


@contextmanager
def _named(url: str) -> Iterator[None]:
    """Converts errors to an `OSError` that names the file, without its secrets."""
    name = without_secrets(url)
    try:
        yield
    except FileNotFoundError as error:
        raise FileNotFoundError(errno.ENOENT, error.strerror or str(error), name) from None
    except _Refused as error:
        kind: Any = {errno.EACCES: PermissionError}.get(error.errno or 0, OSError)
        raise kind(error.errno, without_secrets_of(url, error.strerror or ""), name) from None
    except TimeoutError:
        raise TimeoutError(errno.ETIMEDOUT, "The store did not answer in time", name) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        redact(error)
        reason = without_secrets_of(url, f"{type(error).__name__.lstrip('_')}: {error}")[:600]
        raise ConnectionError(errno.ECONNABORTED, f"The store could not be read ({reason})", name) from None


# Connections


class _Timed:
    """A socket whose waits all end at a deadline, so that many waits together take no longer than the request may."""

    deadline = math.inf

    def recv_into(self, *arguments: Any) -> int:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(min(left, 3600))  # type: ignore[attr-defined]
        return super().recv_into(*arguments)  # type: ignore[misc]


class _Plain(_Timed, socket.socket):
    pass


class _Encrypted(_Timed, ssl.SSLSocket):
    pass


class _Connection(http.client.HTTPConnection):
    """A connection to a server, or to the proxy that the environment names for it."""

    sock: Any
    zone = Zone.PUBLIC
    proxied = False

    @staticmethod
    def to(server: _Server, origin: Zone | None, deadline: float) -> _Connection:
        proxy = _proxy(server)
        address = proxy.server if proxy else server
        connection: _Connection
        if server.scheme == "https":
            connection = _SecureConnection(address.host, address.port, context=_context())
        else:
            connection = _Connection(address.host, address.port)
        connection._create_connection = functools.partial(connection.dial, origin=origin, deadline=deadline)  # type: ignore[attr-defined]
        if proxy:
            connection.go_through(proxy, server)
        return connection

    def go_through(self, proxy: _Target, server: _Server) -> None:
        self.proxied = True
        self.zone = _zone_of_name(server.host)
        self._prefix = ""
        headers = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
        if server.scheme == "https":
            self.set_tunnel(server.host, server.port, headers)
        else:
            self._prefix, self._extra = f"http://{_bracketed(server.host)}:{server.port}", headers

    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> None:  # type: ignore[override]
        if self.proxied and self._prefix:
            url, headers = self._prefix + url, {**headers, **self._extra}
        super().request(method, url, body, headers or {}, **options)

    def check(self, origin: Zone | None) -> None:
        """Checks that this server may be requested after one in zone `origin`, as far as this is known before the
        connection."""
        if origin is not None and (self.sock is not None or self.proxied) and not _may_follow(self.zone, origin):
            raise _inside(self.host)

    def wait_until(self, deadline: float) -> None:
        if self.sock is None:
            self.connect()
        self.sock.deadline = deadline
        self.sock.settimeout(max(deadline - time.monotonic(), 0.001))

    def dial(self, address: tuple[str, int], *unused: Any, origin: Zone | None, deadline: float) -> socket.socket:
        """A socket to the first address of a name that answers. The zone of each address is checked first, because a second
        lookup of the name may return other addresses."""
        problem: OSError = ConnectionError(f"{address[0]} has no address")
        for family, kind, protocol, _, place in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
            zone = zone_of(str(place[0]))
            if origin is not None and not self.proxied and not _may_follow(zone, origin):
                raise _inside(address[0])
            dialled = _Plain(family, kind, protocol)
            dialled.settimeout(max(min(deadline - time.monotonic(), _SECONDS_TO_CONNECT), 0.001))
            try:
                dialled.connect(place)
            except OSError as error:
                dialled.close()
                problem = error
                continue
            if not self.proxied:
                self.zone = zone
            dialled.deadline = deadline
            return dialled
        raise problem


class _SecureConnection(_Connection, http.client.HTTPSConnection):
    pass


@functools.cache
def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.sslsocket_class = _Encrypted
    return context


def _proxy(server: _Server) -> _Target | None:
    """The proxy for a server, from the environment or the system's settings."""
    url = urllib.request.getproxies().get(server.scheme)
    if not url or urllib.request.proxy_bypass(server.host):
        return None
    return _Target.of(url if "://" in url else f"http://{url}")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _basic(user: str) -> str:
    name, _, password = user.partition(":")
    pair = f"{unquote(name)}:{unquote(password)}".encode("utf-8", "surrogateescape")
    return f"Basic {base64.b64encode(pair).decode()}"


# Addresses


def zone_of(address: str) -> Zone:
    """The zone of an IP address. For an IPv6 address with an embedded IPv4 address it is the zone of the latter.

    >>> [zone_of(a).name for a in ("9.9.9.9", "10.0.0.1", "::1", "169.254.169.254", "::ffff:127.0.0.1", "64:ff9b::7f00:1")]
    ['PUBLIC', 'PRIVATE', 'LOOPBACK', 'LINK_LOCAL', 'LOOPBACK', 'LOOPBACK']
    """
    ip: Any = ipaddress.ip_address(address.partition("%")[0])
    if ip.version == 6:
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and ip in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        ip = inner or ip
    if ip.is_loopback or ip.is_unspecified:
        return Zone.LOOPBACK
    if ip.is_link_local or ip.is_multicast:
        return Zone.LINK_LOCAL
    return Zone.PUBLIC if ip.is_global else Zone.PRIVATE


def _zone_of_name(host: str) -> Zone:
    """The zone of a host behind a proxy, which resolves its address."""
    try:
        return zone_of(host)
    except ValueError:
        return Zone.LOOPBACK if host == "localhost" or host.endswith(".localhost") else Zone.PUBLIC


def _may_follow(zone: Zone, origin: Zone) -> bool:
    return zone in (Zone.PUBLIC, origin) or (zone is Zone.PRIVATE and origin is Zone.LOOPBACK)


def _inside(host: str) -> OSError:
    return _Refused(
        errno.EACCES,
        f"The web server hands the request on to {host}, an address of this machine or its network, which is not followed",
    )


def _forget() -> None:
    """In a forked child: the connections are the parent's."""
    global _local
    _local = threading.local()


around_fork(in_child=_forget)
