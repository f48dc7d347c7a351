"""10-kqueue, kqueue_test and the smoke test on another system, in a virtual machine.

    python3 tests/bsd/vm.py --os freebsd                     `make vm OS=freebsd`
    python3 tests/bsd/vm.py --os netbsd --image disk.qcow2 --key ~/.ssh/id_ed25519

Fetches the system's official image, after a yes (DEPS=yes is one) and only if it has the checksum
of images.toml; puts a disk over it that is thrown away; gives the machine an ssh key that is made
for this run, on a second disk (cloud-init's NoCloud); boots it under QEMU, whose only way in is a
port of 127.0.0.1; sends HEAD there; builds and runs the tests; and turns it off. What the tests
print stays in build/vm/OS.txt. Status 0 if both passed, 1 if not or if they could not be run.
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PIECE = 1 << 20
BOOT_S = 1800.0  #: without KVM it takes minutes; a first boot may bring the system up to date
CALM_S = 15.0  #: a first boot may end with a second one
STEP_S = 1800.0
OFF_S = 120.0
QCOW2 = b"QFI\xfb"

#: what is needed, and Debian's package of it
TOOLS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "genisoimage": "genisoimage",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "git": "git",
}

USER_DATA = """\
#cloud-config
ssh_authorized_keys:
  - {key}
runcmd:
  - mkdir -p /root/.ssh
  - chmod 700 /root/.ssh
  - echo "{key}" > /root/.ssh/authorized_keys
  - chmod 600 /root/.ssh/authorized_keys
  - echo "PermitRootLogin prohibit-password" >> /etc/ssh/sshd_config
  - sysrc sshd_enable=YES || true
  - service sshd restart || service ssh restart
"""

#: Within a virtual machine, KVM may refuse to set what is taken from the processor here.
QEMU = """\
qemu-system-x86_64 -cpu max,-arch-capabilities -m 1024 -smp 2 -display none -monitor none
-device virtio-rng-pci -device virtio-net-pci,netdev=net0 -serial file:{console}
-netdev user,id=net0,hostfwd=tcp:127.0.0.1:{port}-:22 -drive file={disk},if=virtio,format=qcow2
"""
QEMU_SEED = "-drive file={seed},media=cdrom,readonly=on,format=raw"

#: Run by the guest's sh, in the tree.
TESTS = """\
PATH=$PATH:/usr/pkg/bin:/usr/local/bin
uname -a
{make} DEPS=skip build/bin/10-kqueue build/bin/kqueue_test || exit 1
for python in python3 python3.13 python3.12; do command -v $python > /dev/null && break; done
build/bin/kqueue_test; kqueue=$?
$python tests/bsd/test_smoke.py 2>&1; smoke=$?
echo "# kqueue_test: status $kqueue; smoke test of 10-kqueue: status $smoke"
test $kqueue = 0 && test $smoke = 0
"""


class Failed(Exception):
    """Why it cannot go on."""


def say(text: str) -> None:
    print(f"vm: {text}", flush=True)


# ---- the image


def consents(question: str) -> bool:
    """DEPS says it, or somebody at a terminal. Silence is no yes."""
    how = os.environ.get("DEPS", "ask")
    if how != "ask" or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return how == "yes"
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def fetch(url: str, sha256: str, image: Path) -> None:
    """Unpacked beside its place, compared, then moved: killed at any moment, it is there whole or
    not.
    """
    part = image.with_name(image.name + ".part")
    digest, unpacker = hashlib.sha256(), lzma.LZMADecompressor()
    try:
        with urllib.request.urlopen(url, timeout=60) as source, part.open("wb") as out:
            while piece := source.read(PIECE):
                digest.update(piece)
                out.write(unpacker.decompress(piece))
        if digest.hexdigest() != sha256:
            raise Failed(f"{url} has the sha256 {digest.hexdigest()}, and not {sha256}: not used")
        part.rename(image)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Failed(f"{url}: {error}") from None
    finally:
        part.unlink(missing_ok=True)


def image_of(name: str, system: dict[str, object], folder: Path) -> Path:
    """The system's own, fetched if it is not here yet."""
    url, sha256 = system.get("url"), system.get("sha256")
    if not isinstance(url, str) or not isinstance(sha256, str):
        raise Failed(f"no image of {name} can be fetched: tests/bsd/README.md says how to make one")
    image = folder / url.rsplit("/", 1)[1].removesuffix(".xz")
    if not image.exists():
        if not consents(f"Fetch {url}, {system['bytes']} bytes?"):
            raise Failed(f"{url} is not here; DEPS=yes fetches it, {system['bytes']} bytes")
        say(f"fetching {url}")
        fetch(url, sha256, image)
    return image


# ---- the machine


@dataclass(frozen=True)
class Guest:
    port: int
    key: Path
    known_hosts: Path

    def command(self, words: str) -> list[str]:
        options = ["BatchMode=yes", "ConnectTimeout=10", "LogLevel=ERROR", "IdentitiesOnly=yes"]
        options += ["StrictHostKeyChecking=accept-new", f"UserKnownHostsFile={self.known_hosts}"]
        flags = [flag for option in options for flag in ("-o", option)]
        login = ["-i", str(self.key), "-p", str(self.port), "root@127.0.0.1"]
        return ["ssh", "-F", "/dev/null", *flags, *login, words]

    def says(self, words: str) -> str | None:
        """What a short command prints; None if it fails, or there is nobody yet."""
        try:
            done = subprocess.run(
                self.command(words), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                check=False, timeout=60,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None

    def run(self, words: str, what: str) -> None:
        say(what)
        if subprocess.run(self.command(words), check=False, timeout=STEP_S).returncode != 0:
            raise Failed(f"{what}: failed")


def make_key_and_seed(folder: Path) -> None:
    """A key, and a disk by the name of "cidata" that tells of it: what cloud-init, and FreeBSD's
    nuageinit, look for.
    """
    key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "key"]
    subprocess.run(key, check=True, cwd=folder)
    public = (folder / "key.pub").read_text().strip()
    (folder / "user-data").write_text(USER_DATA.format(key=public))
    (folder / "meta-data").write_text("instance-id: quest\nlocal-hostname: quest\n")
    seed = "genisoimage -quiet -o seed.iso -V cidata -r -J user-data meta-data"
    subprocess.run(seed.split(), check=True, cwd=folder)


def make_overlay(disk: Path, image: Path, size: str) -> None:
    """What is written goes here. The system may make use of a larger size when it first boots."""
    with image.open("rb") as file:
        kind = "qcow2" if file.read(len(QCOW2)) == QCOW2 else "raw"
    command = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", str(image.resolve())]
    subprocess.run([*command, str(disk), *size.split()], check=True)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def running(command: list[str], off: Guest, words: str) -> Iterator[subprocess.Popen[bytes]]:
    machine = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        yield machine
        say("turning it off")
        off.says(words)
        machine.wait(OFF_S)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"no end after {error.timeout:.0f} s") from None
    finally:
        machine.kill()
        machine.wait()


def await_boot(guest: Guest, machine: subprocess.Popen[bytes], ready: str, console: Path) -> None:
    """Until it answers, and CALM_S later still says the same."""
    deadline = time.monotonic() + BOOT_S
    before: str | None = None
    while (now := guest.says(ready)) is None or now != before:
        if machine.poll() is not None or time.monotonic() > deadline:
            tail = console.read_text(errors="replace")[-2000:] if console.exists() else ""
            raise Failed(f"it does not answer by ssh. The end of its console:\n{tail}")
        before = now
        time.sleep(2 if now is None else CALM_S)


def send_tree(guest: Guest) -> None:
    """What is committed, and nothing else."""
    say("sending HEAD")
    archive = subprocess.Popen(["git", "archive", "--format=tar", "HEAD"], stdout=subprocess.PIPE)
    words = "rm -rf quest && mkdir quest && cd quest && tar xf -"
    done = subprocess.run(guest.command(words), stdin=archive.stdout, check=False, timeout=STEP_S)
    if archive.wait() != 0 or done.returncode != 0:
        raise Failed("the tree did not arrive")


def run_tests(guest: Guest, make: str, result: Path) -> bool:
    say("building and testing")
    words = f"cd quest && sh -c {shlex.quote(TESTS.format(make=make))}"
    with result.open("w") as out:
        tests = subprocess.Popen(
            guest.command(words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert tests.stdout is not None
        for line in tests.stdout:
            out.write(line)
            if not line.startswith("ok "):
                print(line, end="", flush=True)
    return tests.wait() == 0


def test_in_vm(args: argparse.Namespace, system: dict[str, object], folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    image = args.image or image_of(args.os, system, folder)
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
        if not args.key:
            make_key_and_seed(work)
        guest = Guest(free_port(), args.key or work / "key", work / "known_hosts")
        disk, seed, console = (work / name for name in ("disk.qcow2", "seed.iso", "console"))
        make_overlay(disk, image, str(system.get("disk", "")))
        words = f"{QEMU} {'' if args.key else QEMU_SEED}".split()
        settings = {"disk": disk, "seed": seed, "console": console, "port": guest.port}
        command = [word.format(**settings) for word in words]
        command += [word for accel in args.accel.split(",") for word in ("-accel", accel)]
        say(f"booting {image}")
        machine = stack.enter_context(
            running([*command, *shlex.split(args.qemu)], guest, str(system["off"]))
        )
        await_boot(guest, machine, str(system["ready"]), console)
        guest.run(str(system["prepare"]), "installing what is needed")
        send_tree(guest)
        return run_tests(guest, str(system["make"]), folder / f"{args.os}.txt")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--os", default="freebsd")
    parser.add_argument("--image", type=Path, help="a disk of yours: it is not written to")
    parser.add_argument("--key", type=Path, help="of root there; else it is told by cloud-init")
    parser.add_argument("--accel", default="kvm,tcg", help="the first that works: %(default)s")
    parser.add_argument("--qemu", default="", help="more arguments of QEMU")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--table", type=Path, default=HERE / "images.toml")
    args = parser.parse_args()
    systems = tomllib.loads(args.table.read_text())
    if args.os not in systems:
        parser.error(f"there is no {args.os}. There are: {', '.join(systems)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        missing = [f"{name} (Debian: {TOOLS[name]})" for name in TOOLS if not shutil.which(name)]
        if missing:
            raise Failed(f"missing here: {', '.join(missing)}")
        passed = test_in_vm(args, systems[args.os], args.build / "vm")
    except (Failed, OSError, subprocess.SubprocessError) as error:
        print(f"vm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:  # or SIGTERM: the machine is gone, and its disk
        return 130
    say(f"{'passed' if passed else 'NOT passed'}; {args.build}/vm/{args.os}.txt has it all")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
