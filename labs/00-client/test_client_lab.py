"""What a client must do that reads once, if all comes at once."""

from tests.conformance.test_client import OK, Fetch, Script, check, fetch

__all__ = ["fetch"]  # a fixture


def test_a_small_page(fetch: Fetch) -> None:
    check(fetch(Script(OK + b"Content-Length: 5\r\n\r\nhello").url()), 0, b"hello")
