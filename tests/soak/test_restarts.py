"""What restarts.py makes of traces and replies that are made up; the soak: `make soak-restarts`."""

from __future__ import annotations

import asyncio

import pytest
from restarts import Broken, Client, lives

FORK = "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD, child_tidptr=0x7f) = 12"
THREAD = "clone3({flags=CLONE_VM|CLONE_THREAD, child_tid=0x7f} => {parent_tid=[13]}, 88) = 13"
WAIT = "wait4(-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], WNOHANG, NULL) = 12"
GOOD = [
    'execve("bin/server", ["bin/server"], 0x7f /* 9 vars */) = 0',
    "clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD <unfinished ...>",
    "<... clone resumed>, child_tidptr=0x7f) = 12",
    THREAD,
    "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=12, si_uid=0, si_status=0} ---",
    WAIT,
    "wait4(-1, 0x7f, WNOHANG, NULL) = -1 ECHILD (No child processes)",
    "exit_group(0) = ?",
    "+++ exited with 0 +++",
]


def trace(end: str, *, without: str = "") -> list[str]:
    return [f"11 {line}" for line in GOOD if line != without] + [f"12 {end}", f"13 {end}"]


def test_a_life_that_went_well() -> None:
    found = lives(trace("+++ exited with 0 +++"))
    assert (found.programs, found.forked, found.threads) == (1, {12}, 1)
    assert found.faults() == []


@pytest.mark.parametrize(
    ("end", "without", "fault"),
    [
        ("+++ killed by SIGKILL +++", "", "killed by SIGKILL"),
        ("+++ killed by SIGSEGV (core dumped) +++", "", "killed by SIGSEGV"),
        ("+++ exited with 1 +++", "", "exited with 1"),
        ("exit_group(0) = ?", "", "never ended"),
        ("+++ exited with 0 +++", WAIT, "nobody waited for it"),
    ],
)
def test_a_life_that_did_not(end: str, without: str, fault: str) -> None:
    assert lives(trace(end, without=without)).faults() == [f"process 12: {fault}"]


HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n"


@pytest.mark.parametrize(
    ("text", "judged"),
    [
        (HEAD + "\r\nhello", "goes on"),
        (HEAD + "Connection: close\r\n\r\nhello", "ends"),
        (HEAD + "\r\nhell", "a short body"),
        (HEAD + "\r\nhellO", "a wrong body"),
        (HEAD.replace("5", "6") + "\r\nhello", "a wrong length"),
        (HEAD, "a short head"),
        ("", "no reply"),
        ("HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP/1.1 503 Service Unavailable"),
    ],
)
def test_replies(text: str, judged: str) -> None:
    async def judge() -> str:
        client = Client(0, {"name": b"hello"})
        client.reader = asyncio.StreamReader()
        client.reader.feed_data(text.encode())
        client.reader.feed_eof()
        try:
            return "goes on" if await client.reply("name") else "ends"
        except Broken as fault:
            return str(fault)

    assert asyncio.run(judge()) == judged
