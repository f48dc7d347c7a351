"""The contract of a server, line by line. Every line has tests, every test names its lines.

The words are those of the project's design page; where a line needs a choice that the page leaves
open, the choice stands with the tests.
"""

from __future__ import annotations

import pytest

LINES = {
    # ---- command line
    "usage": "-h prints usage on stdout, exit 0",
    "bad-usage": "bad usage: one line on stderr, exit 2",
    "setup-failure": "a failed set-up call: one line `NAME: call what: reason`, exit 1",
    "listening-line": "one line on stdout when it can accept: NAME: listening on http://ADDR:PORT/",
    "quiet-stdout": "nothing else goes to stdout, not with -v either",
    "port-zero": "-p 0 takes any free port",
    "address": "-a chooses the address, IPv6 too",
    "backlog": "-b: so many connections wait to be accepted",
    "one-worker": "-w 1 is accepted by all",
    "log": "-v: a log line per request on stderr; without it none",
    "docroot": "DOCROOT is what is served, . without it",
    # ---- ending
    "stop": "SIGTERM and SIGINT: stop accepting, leave no child, exit 0",
    "stop-in-flight": "... finish replies in flight",
    "stop-idle": "... without waiting for idle connections",
    "stop-grace": "... at most 5 s",
    # ---- HTTP
    "get": "GET on files below DOCROOT",
    "head": "HEAD: the same head, no body",
    "any-length": "files of any length arrive bit by bit as they are, beyond 4 GiB too",
    "index": "/ and dir/ give index.html",
    "date": "Date, right",
    "content-length": "Content-Length, right",
    "content-type": "Content-Type, by the name",
    "last-modified": "Last-Modified, right",
    "version-1.0": "HTTP/1.0 is understood, without Host too",
    "if-modified-since": "If-Modified-Since gives 304",
    "preconditions": "If-None-Match comes before it; If-Match and If-Unmodified-Since give 412",
    "range": "a single Range gives 206 or 416; several and malformed ones are ignored",
    "if-range": "If-Range: the range only of an unchanged file",
    "keep-alive": "1.1: the connection stays for the next request",
    "keep-alive-1.0": "1.0: it stays for those who ask with Connection: keep-alive",
    "close": "the connection is closed after a reply that says so; close is honoured",
    "pipelining": "several requests at once are answered in order",
    "split": "a request may come in pieces of any size",
    "half-close": "half-close after sending is not `gone away`",
    "absolute-form": "absolute-form targets are understood",
    "query": "queries are ignored",
    "percent": "percent-encoding is resolved once",
    "400": "400 malformed",
    "host": "400: 1.1 without Host or with two",
    "403": "403 forbidden",
    "404": "404 not found",
    "405": "405 with Allow for a known method that is not offered",
    "414": "414 request line too long",
    "431": "431 header too long",
    "500": "500 where the file system fails: it does not say that there is no file",
    "501": "501 unknown method",
    "505": "505 version",
    "body": "a request body is never mistaken for the next request",
    "drain": "after an early error the rest is drained for a bounded time: the reply survives",
    # ---- files
    "outside": "no reply for a file outside DOCROOT, by dots, encodings or links, on any kernel",
    "links-inside": "links that stay below: followed where the kernel guarantees it, else 403",
    "regular-only": "regular files only; a FIFO must not hang it",
    "file-changes": "a file that shrinks or vanishes while it is sent ends that connection only",
    # ---- faults
    "survives": "no request, peer or load may end the process",
    "sigpipe": "SIGPIPE is ignored process-wide",
    "emfile": "EMFILE is survived, and without a busy loop",
    "leaks": "no descriptor, child or other resource is left after a connection",
    "no-process": "EAGAIN from fork or pthread_create is survived",
    "accept-errors": "ECONNABORTED, EINTR and other errors of accept are survived",
    "signals": "EINTR and short writes lose nothing",
    "memory": "memory does not grow with requests or connections",
    "idle-time-out": "-t: a client that keeps the server waiting is ended",
    # ---- the model
    "concurrency": "silent and slow clients do not keep others from being served",
    "mechanism": "the server works by the mechanism its chapter is about",
}


#: All tests that were collected, before any were taken away by -k or -m.
COLLECTED = pytest.StashKey[list[pytest.Item]]()


def contract(*lines: str) -> pytest.MarkDecorator:
    """Marks a test with the lines it checks."""
    unknown = [line for line in lines if line not in LINES]
    if unknown or not lines:
        raise KeyError(f"no such line of the contract: {unknown}")
    return pytest.mark.contract(*lines)
