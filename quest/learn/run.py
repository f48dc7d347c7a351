"""`make run`: a server of the series on a port that is free, with a small site of its own, and
three lines that say what to do with it.
"""

import errno
import getopt
import ipaddress
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from quest.ground.entry import errors_named
from quest.learn import state
from quest.learn.chapters import chapter, servers
from quest.learn.state import Folders, folders
from quest.learn.words import Wrong

SITE = Path("code/site")
FIRST_PORT, PORTS = "8080", 20
HERE = "127.0.0.1"
#: Of what a server says of itself (-h): a letter, and a name if a value goes with it.
OPTION = re.compile(r"^  -(\w)( [A-Z]+)?(?: |$)", re.M)
# Bytes of /big.bin: more than all buffers between a server and a browser hold. Most is a hole.
BIG = 400_000_000


def reached_at(text: str) -> str:
    """The address for other machines' browsers: of 0.0.0.0 the one that the way out begins with."""
    if not ipaddress.ip_address(text).is_unspecified:
        return text
    here, far_away = ("::1", "2001:db8::1") if ":" in text else (HERE, "192.0.2.1")
    with socket.socket(_family(text), socket.SOCK_DGRAM) as probe:
        try:  # for documentation (RFC 5737, RFC 3849): no machine has it, and nothing is sent
            probe.connect((far_away, 9))
        except OSError:  # there is no way out
            return here
        return str(probe.getsockname()[0])


def _family(text: str) -> socket.AddressFamily:
    try:
        version = ipaddress.ip_address(text).version
    except ValueError:
        raise Wrong(f"ADDR={text}: give an IP address of this machine; 0.0.0.0 is all it has") from None
    return socket.AF_INET6 if version == 6 else socket.AF_INET


def free_port(wanted: str, where: str = HERE) -> int:
    """The wanted port, or the next one that no other program listens on; any for "0". Wrong if
    there is none.
    """
    first = int(wanted) if wanted.isdecimal() else -1
    if not 0 <= first < 65536:
        raise Wrong(f"PORT={wanted}: a port is a number from 1 to 65535")
    for port in range(first, min(first + PORTS, 65536)):
        with socket.socket(_family(where)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((where, port))
            except PermissionError:
                why = "only root may listen there; take one from 1024 on"
                raise Wrong(f"PORT={wanted}: {why}") from None
            except OSError as error:
                if error.errno == errno.EADDRNOTAVAIL:
                    raise Wrong(f"ADDR={where}: this machine has no such address") from None
                continue
            return int(probe.getsockname()[1])
    raise Wrong(f"PORT={wanted}: it and the {PORTS - 1} ports after it are taken; try another, for instance PORT=9000")


def say_taken(wanted: str, port: int) -> None:
    """A line if another port was taken than the one that was asked for."""
    if wanted not in ("0", str(port)):
        print(f"port {wanted} is taken: {port} is used instead", flush=True)


def built(build: Path, program: str) -> Path:
    """The program, made if it is not; Wrong if it cannot be."""
    path = build / "bin" / program
    done = subprocess.run(["make", "-s", "-j4", "--no-print-directory", str(path)], check=False)
    if done.returncode != 0 or not path.exists():
        raise Wrong(f"{program} could not be built: make doctor says what is missing here")
    return path


def build_typed_programs(build: Path, slug: str) -> None:
    """The programs that the chapter's reader starts by hand. What cannot be built here, make
    doctor says; the server runs without it.
    """
    about = chapter(slug)
    if about and about.programs:
        paths = [str(build / "bin" / name) for name in about.programs]
        command = ["make", "-s", "-k", "-j4", "--no-print-directory", *paths]
        subprocess.run(command, check=False, stderr=subprocess.DEVNULL)


def site(build: Path, slug: str) -> Path:
    """The folder to serve: the pages of code/site, with the name of the server that serves them."""
    root = build / "site" / slug
    with errors_named(root):
        _fill(root, build, slug)
    return root


def _fill(root: Path, build: Path, slug: str) -> None:
    root.mkdir(parents=True, exist_ok=True)
    about = chapter(slug)
    book = build / "book" / f"{slug}.html"
    pandoc = shutil.which("pandoc")
    values = {
        "@server@": slug,
        "@title@": about.title if about else slug,
        "@summary@": about.summary if about else "",
        "@chapter@": "/chapter.txt" if about else "/",
        "@as@": "as text" if pandoc else "its source",
        "@book@": "" if book.exists() else " (after <code>make book</code>)",
    }
    for page in SITE.iterdir():
        content = page.read_text(encoding="utf-8")
        for mark, value in values.items():
            content = content.replace(mark, value)
        (root / page.name).write_text(content, encoding="utf-8")
    if about:
        text, shown = Path(f"chapters/{slug}.md"), root / "chapter.txt"
        words = ["-t", "plain", "-s", str(text), "-o", str(shown)]
        if not pandoc or subprocess.run([pandoc, *words], check=False).returncode != 0:  # its own line says why
            shutil.copyfile(text, shown)
    shutil.copyfile("figures/readme.svg", root / "picture.svg")
    shutil.copyfile("figures/quest.svg", root / "quest.svg")
    with (root / "big.bin").open("wb") as big:
        big.write(b"A big file. The rest is zeros, which take no room on the disk.\n")
        big.truncate(BIG)


def with_a_folder(program: Path, words: list[str], root: Path) -> list[str]:
    """The words, and the site to serve unless they name a folder: without one a server takes the
    folder it is started in, and that is the tree, with all that is in it.
    """
    usage = subprocess.run([program, "-h"], capture_output=True, text=True, check=False).stdout
    letters = "".join(letter + (":" if value else "") for letter, value in OPTION.findall(usage))
    try:
        named = getopt.gnu_getopt(words, letters + "h")[1]
    except getopt.GetoptError:  # of which the server says what it is
        named = []
    return words if named else [*words, str(root)]


def run(settings: dict[str, str]) -> int:
    """`make run`, of CH, PORT, ADDR, ARGS, BUILD and WORK: the server takes its place."""
    places = folders(settings)
    build = places.build
    if not settings.get("CH"):
        raise Wrong(f"which server? CH=01 is the first; there are {', '.join(servers())}")
    slug = settings["CH"]
    wanted = settings.get("PORT", FIRST_PORT)
    where = settings.get("ADDR", HERE)
    if where != HERE and slug == "00-client":
        raise Wrong(f"ADDR={where}: {slug} listens at no address; leave ADDR= out")
    free_port(wanted, where)  # what cannot be is said before anything is made
    words = settings.get("ARGS", "").split()
    program = built(build, slug)
    build_typed_programs(build, slug)
    if slug == "00-client":
        return _become([str(program), *words]) if words else _client(places, program, wanted)
    root = site(build, slug)
    if words and slug != "02-inetd":
        settled = ["-a", where] if "ADDR" in settings else []
        settled += ["-p", str(free_port(wanted, where))] if "PORT" in settings else []
        return _become([str(program), *settled, *with_a_folder(program, words, root)])  # of two -p the last one holds
    if slug == "02-inetd" and not shutil.which("tcpserver"):
        raise Wrong("02-inetd needs tcpserver, which listens for it: apt-get install ucspi-tcp")
    client = built(build, "00-client")
    port = free_port(wanted, where)  # last: while all this was made, another may have taken the first
    say_taken(wanted, port)
    state.note_step(places.progress, "run", slug)
    host = reached_at(where)
    url = f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
    print(f"\n  open  {url}\n  try   in a second terminal: {client} -v {url}hello.txt\n  stop  Ctrl-C\n", flush=True)
    if slug != "02-inetd":
        return _become([str(program), "-v", "-a", where, "-p", str(port), str(root)])
    words = with_a_folder(program, words, root) if words else ["-v", str(root)]
    return _become(["tcpserver", where, str(port), str(program), *words])


def _client(places: Folders, program: Path, wanted: str) -> int:
    """It fetches from something: from a server of ours that is started for it, and ended."""
    root, server = site(places.build, "01-iterative"), built(places.build, "01-iterative")
    port = str(free_port(wanted))
    url = f"http://127.0.0.1:{port}/hello.txt"
    command = [str(server), "-p", port, str(root)]
    print(f"$ {' '.join(command)} &\n$ {program} -v {url}", flush=True)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            process.stdout.readline()  # it listens
            status = subprocess.run([str(program), "-v", url], check=False).returncode
        finally:
            process.terminate()
    if status == 0:
        state.note_step(places.progress, "run", "00-client")
        print("\nThe head of the reply is on stderr, because of -v; the body is on stdout.")
    return status


def _become(command: list[str]) -> int:
    """The server takes our place: signals reach it, and its status is ours."""
    sys.stdout.flush()
    os.execvp(command[0], command)
