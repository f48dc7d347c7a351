"""Every kind of failure is counted as what it is, and never as a fast sample; bad usage."""

import json
import shutil
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hammer.hammer_support import (
    OK_CLOSE,
    TIMES,
    Done,
    Peer,
    Script,
    Server,
    errors_of,
    hold,
    keep_alive,
    limited,
    measure,
    measure_on,
    one_reply,
    rows,
    run,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Failing = Callable[..., Done]


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        ("reset", one_reply(b"", then=Peer.reset)),
        ("reset", one_reply(HEAD, then=Peer.reset)),
        ("short_reply", one_reply(b"")),
        ("short_reply", one_reply(HEAD)),
        ("short_reply", one_reply(HEAD + b"\r\nonly a part")),
        ("short_reply", one_reply(CHUNKED + b"5\r\nhe")),
        ("bad_head", one_reply(b"SSH-2.0-OpenSSH_9.2\r\n")),
        ("bad_head", one_reply(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 2000 + b"\r\n")),
        ("bad_body", one_reply(CHUNKED + b"xyz\r\n")),
        ("excess", one_reply(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\ntoo much")),
        ("status", one_reply(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")),
        ("status", one_reply(b"HTTP/1.1 304 Not Modified\r\n\r\n")),
        ("timeout", hold),
        ("timeout", one_reply(HEAD + b"\r\nthe beginning", then=hold)),
    ],
)
def test_error_kind(kind: str, script: Script, tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    patience = "0.3" if kind == "timeout" else "60"
    with Server(script) as server:
        ended = run(f"--json -n 4 -c 2 -t {patience} --samples {samples}", server.url())
    result = json.loads(ended.stdout)
    assert ended.returncode == 1, "nothing was fetched"
    assert errors_of(result) == {kind: 4}
    assert (result["requests"], result["good"]) == (4, 0)
    for times in ("connect", "first_byte", "total"):
        nothing = {"count": 0, "histogram": []}
        assert result[times] == dict.fromkeys(TIMES) | nothing
    assert [row["error"] for row in rows(samples)] == [kind] * 4


def test_connect_timeout() -> None:
    """A listener whose queue is full, of a crowd, drops the SYN."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        url = f"http://127.0.0.1:{full.getsockname()[1]}/"
        result = measure("-n 2 -c 2 -t 0.3 --idle 4", url)
    assert errors_of(result) == {"connect_timeout": 2}


@pytest.fixture
def made_to_fail(monkeypatch: pytest.MonkeyPatch) -> Failing:
    """made_to_fail("CALL:error=EIO", argument, ...) -> what hammer did, as a process."""
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("needs strace (apt install strace) to make a call fail")
    # The leak checker cannot work under a tracer.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")

    def fail(inject: str, *arguments: str) -> Done:
        calls = inject.partition(":")[0]
        tracer = f"{strace} -qq -o /dev/null -e trace={calls} -e inject={inject}"
        traced = run("--json", *arguments, before=limited(60), under=tracer)
        if "ptrace" in traced.stderr:
            pytest.skip("tracing is not allowed here")
        return traced

    return fail


@pytest.mark.parametrize(
    ("inject", "errors"),
    [
        # About this machine, not about the server: a kind of its own. No descriptor is lost.
        ("connect:error=EADDRNOTAVAIL:when=1..80", {"no_address": 80}),
        # Before Linux 5.11 waiting is by the millisecond.
        ("epoll_pwait2:error=ENOSYS", {}),
    ],
)
def test_what_the_kernel_has_not_got(
    made_to_fail: Failing, inject: str, errors: dict[str, int]
) -> None:
    with Server(one_reply(OK_CLOSE)) as server:
        result = json.loads(made_to_fail(inject, "-n", "90", server.url()).stdout)
    assert errors_of(result) == errors
    assert result["good"] == 90 - sum(errors.values())


@pytest.mark.parametrize(
    ("which", "options"),
    [
        *(("1+", "-n 9"), ("1+", "-n 9 --herd 3"), ("1+", "-n 9 --idle 3")),
        ("2+", "--idle 1"),  # with the first it is established
    ],
)
def test_a_wait_that_fails_is_one_line(made_to_fail: Failing, which: str, options: str) -> None:
    inject = f"epoll_pwait2:error=EINVAL:when={which}"
    with Server(keep_alive) as server:
        done = made_to_fail(inject, *options.split(), server.url())
    says = "hammer: epoll_wait: Invalid argument\n"
    assert (done.returncode, done.stderr) == (1, says)
    assert "schema" not in done.stdout


def test_a_crowd_that_cannot_send_is_dropped(made_to_fail: Failing) -> None:
    """Its first bytes, once: the server may have reset the connection by then."""
    with Server(keep_alive) as server:
        words = ("-n", "9", "-r", "20", "-c", "2", "--slow-read", "2", "--drip", "50", server.url())
        result = json.loads(made_to_fail("sendto:error=ECONNRESET:when=1", *words).stdout)
    assert (result["good"], result["slow_read"]["dropped"]) == (9, 1)


def test_a_crowd_that_cannot_connect_at_all_is_lost_from_the_start(made_to_fail: Failing) -> None:
    with Server(keep_alive) as server:
        words = ("-n", "1", "--idle", "2", "--drip", "600000", server.url())
        idle = json.loads(made_to_fail("connect:error=EADDRNOTAVAIL:when=1..2", *words).stdout)["idle"]
    assert (idle["refused"], idle["first_loss_s"]) == (2, pytest.approx(0, abs=1e-6))


def test_a_reply_that_fills_the_buffer(made_to_fail: Failing) -> None:
    """All of it has come before it is received, and nothing is to be looked for behind it."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 65480\r\nX: "
    reply = head.ljust(65536 - 65480 - 4, b"x") + b"\r\n\r\n" + b"x" * 65480
    with Server(one_reply(reply)) as server:
        done = made_to_fail("recvfrom:delay_enter=200000", "-n", "1", server.url())
    result = json.loads(done.stdout)
    assert (result["good"], errors_of(result)) == (1, {})


def test_clients_that_rest_do_not_begin_before_their_turn(made_to_fail: Failing, tmp_path: Path) -> None:
    """Eight are refused, one after the other; when the last is, the others have rested, and begin together."""
    with Server(one_reply(OK_CLOSE)) as server:
        inject = "connect:error=ECONNREFUSED:delay_enter=20000:when=1..8"
        words = ("-n", "16", "-c", "8", "--samples", str(tmp_path / "samples"), server.url())
        assert made_to_fail(inject, *words).returncode == 0
    starts = [int(row["start_ns"]) for row in rows(tmp_path / "samples")]
    assert len({*starts}) == len(starts) == 16


def test_a_summary_with_a_gap_is_no_success(made_to_fail: Failing) -> None:
    """The first write fails, and those after it do not: so does a pipe that does not block."""
    with Server(keep_alive) as server:
        done = made_to_fail("write:error=ENOSPC:when=1", "-k", "-n", "3000", server.url())
    assert (done.returncode, done.stderr) == (1, "hammer: stdout: No space left on device\n")


def test_errors_do_not_end_the_run_or_enter_the_times() -> None:
    broken = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    _, result = measure_on(one_reply(broken, OK_CLOSE, b"", OK_CLOSE), "-n 10")
    assert errors_of(result) == {"status": 1, "short_reply": 1}
    assert result["good"] == result["total"]["count"] == 8
    assert result["status"] == {"1xx": 0, "2xx": 8, "3xx": 0, "4xx": 0, "5xx": 1}
    assert result["bytes"]["body"] == 40
    assert result["requests_per_s"] * result["seconds"] == pytest.approx(8)
    assert result["little"]["x"] * result["seconds"] == pytest.approx(10)


def test_check_finds_a_url_that_changes_its_length() -> None:
    longer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello!"
    for options, errors in (("-n 4 --check", {"wrong_length": 1}), ("-n 4", {})):
        _, result = measure_on(one_reply(OK_CLOSE, longer, OK_CLOSE), options)
        assert errors_of(result) == errors


def test_bytes_nobody_asked_for_are_reported() -> None:
    def surplus(peer: Peer) -> None:
        time.sleep(0.3)  # hammer has taken the reply as complete by then
        peer.send(b"surplus")

    _, result = measure_on(one_reply(OK_CLOSE, then=surplus), "-n 2")
    assert result["good"] == 2
    assert result["connections"]["unsolicited"] == 1, "the last one is left at the end"


@pytest.mark.long
def test_a_close_that_never_comes_is_reported() -> None:
    """The limit is that of the replies, too, which have to be in time on a busy machine."""
    _, result = measure_on(one_reply(OK_CLOSE, then=hold), "-n 3 -t 2")
    assert result["good"] == 3
    assert result["connections"]["not_closed"] == 2


# ---- bad usage

URL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ("", "-n N, -s SECONDS"),
        (URL, "-n N, -s SECONDS"),
        ("-n 1", "no URL"),
        (f"-n 0 {URL}", "-n: '0'"),
        (f"-n 1.5 {URL}", "-n: '1.5'"),
        (f"-c many -n 1 {URL}", "-c: 'many'"),
        (f"-s -1 {URL}", "-s: '-1'"),
        (f"-s nan {URL}", "-s: 'nan'"),
        (f"-r 0 -n 1 {URL}", "-r: '0'"),
        (f"-t 0 -n 1 {URL}", "-t: '0'"),
        (f"--ramp 0 -n 1 {URL}", "--ramp: '0'"),
        (f"--crowd 9 --slow 101% {URL}", "'101%' is not a whole number from 0 to 100%"),
        (f"--crowd 9 --slow 1.5% {URL}", "--slow: '1.5%'"),
        (f"--crowd 9 --idle 5% {URL}", "--idle: '5%'"),
        (f"--slow 5% {URL}", "a share needs --crowd N"),
        (f"--crowd 9 --slow 60% --half-dead 41% {URL}", "more than the whole"),
        (f"--seed -1 -n 1 {URL}", "--seed: '-1'"),
        (f"--source 10.0.0.1 -n 1 {URL}", "127.0.0.0/8"),
        (f"--source 127.0.0.9-127.0.0.2 -n 1 {URL}", "ends before"),
        (f"--source 127.0.0.2, -n 1 {URL}", "not an IPv4"),
        ("--source 127.0.0.2 -n 1 http://[::1]:9/", "--source is for IPv4"),
        (f"--allow-host name -n 1 {URL}", "--allow-host: 'name'"),
        ("-n 1 https://127.0.0.1/", "http://"),
        ("-n 1 http://127.0.0.1:65536/", "port"),
        ("-n 1 http://127.0.0.1:x/", "port"),
        ("-n 1 http:///", "host"),
        ("-n 1 http://example.invalid/", "host"),
        ("-n 1 http://[::1/", "']'"),
        ("-n 1 http://127.0.0.1/a\x7f", "percent-encoded"),
        ("-n 1 http://127.0.0.1/#x", "fragment"),
        ("-n 1 -i /nonexistent/urls", "No such file"),
        ("-n 1 -i /dev/null", "no URL"),
        (f"-n 1 -i /dev/null {URL}", "exclude"),
        ("-n", "requires an argument"),
        ("--no-such", "unrecognized option"),
    ],
)
def test_bad_usage_is_one_clear_line(args: str, says: str) -> None:
    result = run(args)
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert says in result.stderr


@pytest.mark.parametrize("args", [(f"{URL}{'a' * 9000}",), ("--source", "127.0.0.2," * 99)], ids=len)
def test_what_is_long_leaves_room_for_the_reason(args: tuple[str, ...]) -> None:
    result = run("-n 1", *args)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.endswith((": longer than 8000 bytes\n", ": not an IPv4 address\n"))


@pytest.mark.parametrize("host", ["192.0.2.1", "10.1.2.3", "0.0.0.0", "[2001:db8::1]", "128.0.0.1"])
def test_refuses_what_is_not_loopback(host: str) -> None:
    with Server(keep_alive) as server:
        result = run("-n 1 --idle 1", server.url(), f"http://{host}:{server.port}/")
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "not loopback" in result.stderr
    assert "--allow-host" in result.stderr
    assert server.connections == 0, "refused before anything was sent anywhere"


def test_allow_host_allows_that_host_only() -> None:
    """0.0.0.0 is not a loopback address, but Linux takes it for this host: a safe stand-in."""
    with Server(keep_alive) as server:
        target = f"http://0.0.0.0:{server.port}/"
        assert measure("-n 2 --allow-host 0.0.0.0", target)["good"] == 2
        assert run("-n 2 --allow-host 192.0.2.1", target).returncode == 2


def test_line_of_a_bad_url_in_a_file(tmp_path: Path) -> None:
    urls = tmp_path / "urls"
    for bad, says in (("ftp://127.0.0.1/", "does not begin with http://"), (f"{URL}a b", "")):
        urls.write_text(f"{URL}\n# fine\n{bad}\n")
        result = run(f"-n 1 -i {urls}")
        assert result.returncode == 2
        assert result.stderr.startswith(f"hammer: {urls}:3: {says}")
        assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-c 100", "needs 116 descriptors, but the hard limit is 60"),
        ("-c 40 --herd 600", "needs 70 descriptors, but the hard limit is 60"),  # 14 processes
        ("--samples /nonexistent/samples", "/nonexistent/samples: No such file or directory"),
    ],
)
def test_what_cannot_be_begun_is_one_clear_line(options: str, says: str) -> None:
    result = run(f"-n 1 {options} {URL}", before=limited(60))
    assert (result.returncode, result.stderr) == (1, f"hammer: {says}\n")


def test_soft_descriptor_limit_is_raised() -> None:
    with Server(keep_alive) as server:
        result = measure("-k -n 200 -c 100", server.url(), before=limited(30, 300))
    assert result["good"] == 200


def test_full_disk_under_the_samples() -> None:
    with Server(keep_alive) as server:
        result = run("-n 1 --samples /dev/full", server.url())
    assert result.returncode == 1
    assert result.stderr == "hammer: /dev/full: No space left on device\n"
    assert result.stdout.startswith("1 fetches"), "the summary is not lost"


def test_a_summary_that_cannot_be_written_takes_no_samples_with_it(tmp_path: Path) -> None:
    with Server(keep_alive) as server, open("/dev/full", "wb") as full:
        done = run(f"-n 3 --samples {tmp_path}/samples", server.url(), stdout=full.fileno())
    assert (done.returncode, done.stderr) == (1, "hammer: stdout: No space left on device\n")
    assert len(rows(tmp_path / "samples")) == 3


def test_a_crowd_that_nobody_can_be_told_of() -> None:
    with Server(hold) as server, open("/dev/full", "wb") as full:
        done = run("--crowd 2", server.url(), stdout=full.fileno())
    assert (done.returncode, done.stderr) == (1, "hammer: stdout: No space left on device\n")
