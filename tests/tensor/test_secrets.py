"""URLs as they are shown: no user, no password, no values of a query, no fragment, in texts of any kind."""

from __future__ import annotations

import errno

import pytest

from ndd._tensor.secrets import error_text, redact, without_secrets, without_secrets_of

SHOWN = {
    "http://user:PASSWORD@host/a.jpg?x=1": "http://host/a.jpg?x=***",
    "https://u:p@ss@h/a": "https://h/a",
    "http://u:pa/ss@h/a": "http://h/a",
    "http://u:pa ss@h/a b.jpg?sig=AB%2BC=": "http://h/a b.jpg?sig=***",
    "http://us%65r:p%40ss@host:80/a": "http://host:80/a",
    "http://TOKEN@host/a": "http://host/a",
    "http://h/a?TOKEN": "http://h/a?***",
    "http://h/a#tok": "http://h/a#***",
    "http://h/a#access_token=abc&x=5": "http://h/a#access_token=***&x=***",
    "http://h/p;jsessionid=5?x": "http://h/p;jsessionid=***",
    "http://h/a.tar?sig=1 record 4": "http://h/a.tar?sig=*** record 4",
    "two: http://u:p@h/a?s=1 and https://v:w@h2/b?t=2, http://u:q@h3.":
        "two: http://h/a?s=*** and https://h2/b?t=***, http://h3.",
    "GET /a.jpg?X-Amz-Signature=abc HTTP/1.1": "GET /a.jpg?X-Amz-Signature=*** HTTP/1.1",
    "https%3A%2F%2Fu%3Ap%40h%2Fa%3Fsig%3Dabc%26x%3D4": "https%3A%2F%2Fh%2Fa%3Fsig%3D***%26x%3D***",
    "http://h/a.jpg%3FX-Amz-Signature=abc": "http://h/a.jpg%3FX-Amz-Signature=***",
    "(http://h/a?sig=AbC/+=): it failed": "(http://h/a?sig=***): it failed",
    "az://c/k?sv=1&sig=2": "az://c/k?sv=***&sig=***",
    "ftp://u:p@h/a": "ftp://h/a",
}  # fmt: skip
KEPT = [
    "/data/a.jpg?w=100", "file:///data/a.jpg?w=100", "s3://b/x y%20é#/0.jpg", "s3://b/what?.jpg", "http://[::1]:8000/a@b",
    "http://h:80/a@b.jpg: x@y", "is it http://h/a? or so", "resize: size=5", "50% of a@b", "",
]  # fmt: skip


@pytest.mark.parametrize("text", SHOWN)
def test_hidden(text):
    assert without_secrets(text) == SHOWN[text]
    assert without_secrets(SHOWN[text]) == SHOWN[text]


@pytest.mark.parametrize("text", KEPT)
def test_kept(text):
    assert without_secrets(text) == text


def test_texts_of_other_libraries_in_any_encoding():
    url = "http://me:p%40ssword@host/a.jpg?sig=ab%2Fcd%3D&part=7"
    told = f"{url}: p@ssword, p%40ssword, ab/cd=, ab%2Fcd%3D of me at host"
    shown = without_secrets_of(url, told)
    assert not [secret for secret in ("ssword", "ab/cd", "ab%2Fcd") if secret in shown]
    assert shown.startswith("http://host/a.jpg?sig=***&part=***: ")


def test_a_chain_of_errors():
    url = "http://me:word@host/a?sig=5"
    try:
        try:
            raise OSError(errno.EIO, f"no answer from {url}", url)
        except OSError as error:
            raise ValueError(f"cannot read {url}", 3) from error
    except ValueError as error:
        error.__notes__ = [f"see {url}"]
        result = redact(error)
    cause = result.__cause__
    told = [str(result), str(cause), cause.filename, *result.__notes__]
    assert all("http://host/a?sig=***" in text and "word" not in text for text in told)
    assert cause.errno == errno.EIO


def test_errors_that_cannot_be_changed_or_shown():
    class Fixed(OSError):
        filename = property(lambda self: "http://u:p@h")

    class Mute(Exception):
        def __str__(self):
            raise ValueError

    assert redact(Fixed(5, "x"))
    assert error_text(Mute()) == "its text cannot be shown (ValueError)"
    assert error_text(RuntimeError("http://u:p@h/a")) == "http://h/a"
