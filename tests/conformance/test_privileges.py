"""What a server may do: -u USER takes root's rights, and a worker of 15-slashdot has fewer still.
What a confined worker is refused: tests/unit/confine_test.c.
"""

import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import proc
from tests.conformance.matrix import LISTENING, SHAPES, contract, kind
from tests.conformance.process import AS_ROOT, Server, Target, Unprivileged, wait_until
from tests.conformance.programs import Run, Start, complaint
from tests.conformance.site import HELLO, Site
from tests.conformance.wire import request

pytestmark = kind("serving")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has rights to give up")
USER = "65534"  #: nobody's number, wherever there is one
OF_ROOT_ALONE = 0o600


def status(task: str) -> dict[str, list[str]]:
    lines = [line.split() for line in proc.text(task, "status").splitlines()]
    return {words[0].rstrip(":"): words[1:] for words in lines if words}


def statuses(server: Server) -> Iterator[dict[str, list[str]]]:
    """Of all threads of all its processes; under inetd of those that it has started."""
    for pid in server.session():
        if not (server.target.model.under_inetd and pid == server.pid):
            for task in proc.tasks(pid):
                if found := status(task):
                    yield found


def rights(found: dict[str, list[str]]) -> tuple[str, ...]:
    names = ("Uid", "Gid", "Groups", "CapPrm", "CapEff", "NoNewPrivs")
    return tuple(" ".join(sorted(set(found[name]))) for name in names)


NONE = "0" * 16
OF_USER = (USER, USER, USER, NONE, NONE, "1")


@as_root
@contract("privileges")
def test_root_is_given_up(target: Target, start: Start, own_site: Site) -> None:
    """By each thread of each process, also one that was there before; and files are opened with the
    rights of the user, whatever root could have read.
    """
    if target.variant == "tsan":
        pytest.skip("its own thread is none of the C library's, which would change it, too")
    own_site.write("secret.txt", b"x").chmod(OF_ROOT_ALONE)
    server = start("-u", USER, root=own_site.root)
    with server.connect() as c:
        c.send(request("/hello.txt"))
        assert c.read_reply().body == HELLO
        assert {rights(found) for found in statuses(server)} == {OF_USER}
    assert server.get("/secret.txt").status == 403
    assert server.stderr(whole=True) == ""


@as_root
@contract("privileges", servers=("01-iterative",))
def test_the_group_is_that_of_the_user(start: Start) -> None:
    """The user is given by name, then by number. The group of the same number may have nothing to do with him."""
    user = next((user for user in pwd.getpwall() if user.pw_gid != user.pw_uid != 0), None)
    if user is None:
        pytest.skip("each user here has the group of the same number")
    uid, gid = str(user.pw_uid), str(user.pw_gid)
    for given in (user.pw_name, uid):
        server = start("-u", given)
        assert {rights(found) for found in statuses(server)} == {(uid, gid, gid, NONE, NONE, "1")}
        assert server.serves()


@as_root
@contract("privileges", servers=("12-aio",))
def test_the_helper_gives_it_up_too(target: Target, start: Start) -> None:
    if target.variant == "tsan":
        pytest.skip("as above")
    server = start("-u", USER, "-m", "unix")
    server.begins_anew()  # with all threads of the helper
    assert server.serves()
    assert {rights(found) for found in statuses(server)} == {OF_USER}


@contract("privileges", "setup-failure")
def test_users_that_it_cannot_become(target: Target, run: Run, unprivileged: Unprivileged) -> None:
    name = target.binary.name
    program = unprivileged.command(target.binary)
    said = complaint(run(target.binary, "-u", "no-such-user", "-p", "0"), 1, name)
    assert said == "-u no-such-user: no such user"
    for user in ("root", "0", "12"):
        said = complaint(run(*program, "-u", user, "-p", "0"), 1, name)
        assert said == f"-u {user}: only root can become another user"


@contract("privileges", of="model", servers=SHAPES)
def test_the_user_that_it_is_already(start: Start, unprivileged: Unprivileged) -> None:
    user = USER if unprivileged.prefix else str(os.getuid())
    assert start("-u", user, user=unprivileged).serves()
    # With stdin closed, an earlier call leaves an error in errno; it must not be taken for "the number is too large".
    closed = ("/bin/sh", "-c", 'exec "$@" <&-', "sh")
    assert start("-u", user, user=unprivileged, wrapper=closed).serves()


@as_root
@contract("privileges", of="model")
@pytest.mark.servers(*LISTENING)
def test_root_without_a_user_is_told(start: Start) -> None:
    """Once; and not where -u says that it is meant."""
    server = start()
    assert server.serves()
    assert len(AS_ROOT.findall(server.stderr(whole=True))) == 1
    assert start("-u", "root").stderr(whole=True) == ""


# ---- 15-slashdot


class StillRoot(Unprivileged):
    """Has the program where another user can start it, and starts it as root."""

    @property
    def prefix(self) -> list[str]:
        return []


def workers_rights(server: Server) -> set[tuple[str, ...]]:
    return {(*rights(status(task)), *status(task)["Seccomp"])
            for pid in server.children() for task in proc.tasks(pid)}  # fmt: skip


@as_root
@contract("privileges", servers=("15-slashdot",))
def test_a_restart_of_who_is_no_longer_root(target: Target, start: Start, top: Path) -> None:
    """The same command line, by the user: it is that user already. Workers are confined, all their
    threads, before and after; with -f they are not.
    """
    if target.variant == "tsan":
        pytest.skip("as above")
    filtered = "0" if target.variant == "asan" else "2"
    server = start("-u", USER, "-w", "2", user=StillRoot(top, False))
    assert workers_rights(server) == {(*OF_USER, filtered)}
    before = server.children()
    server.signal(signal.SIGHUP)

    def replaced() -> bool:
        return len(server.children()) == 2 and not set(before) & set(server.children())

    assert wait_until(replaced, server.patience.limit), server.stderr()
    assert workers_rights(server) == {(*OF_USER, filtered)}
    assert server.serves()
    server.is_back_with(2)
    assert {row[-1] for row in workers_rights(start("-f"))} == {"0"}
