"""The programs of an experiment: where they are, what is missing, and their hashes, by which a
changed program is known.
"""

import hashlib
import json
import struct
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from quest.ground import places
from quest.ground.places import BUILD, Answer, build_folder
from quest.measure import chosen, needs, peers
from quest.measure.remote import Client
from quest.spec.model import LOAD_TOOLS, NO_LOAD, Experiment, Params, Variant
from quest.spec.plan import expand_all


def folders(variant: Variant) -> Params:
    """{bin}: where the programs of the variant are; {build}: the folder above."""
    return {"bin": str(build_folder(variant.build)), "build": str(BUILD)}


def find(word: str) -> Path | None:
    """The file that a command word stands for, a path or a program in PATH; or None."""
    if "/" in word:
        path = Path(word)
        return path if path.is_file() else None
    path_of_program = places.which(word)
    return Path(path_of_program) if path_of_program else None


def fingerprint(path: Path) -> str:
    """SHA-256 of what a program is made of when it runs.

    Debugging information is left out: moving a line in a source file must not throw results away.
    """
    data = path.read_bytes()
    return hashlib.sha256(_loaded_sections(data) or data).hexdigest()


def _loaded_sections(data: bytes) -> bytes:
    """Names and contents of the sections a 64-bit little-endian ELF file has in memory."""
    if data[:6] != b"\x7fELF\x02\x01":
        return b""
    try:
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count, names = struct.unpack_from("<HHH", data, 0x3A)
        headers = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(count)]
        text = headers[names][4]
        sections = b""
        for name_at, kind, flags, _, offset, length in headers:
            name = data[text + name_at : data.index(b"\0", text + name_at)]
            # 2 = SHF_ALLOC, 8 = SHT_NOBITS; the build id is a hash over the debugging information
            # too.
            if flags & 2 and name != b".note.gnu.build-id":
                content = b"%d" % length if kind == 8 else data[offset : offset + length]
                sections += name + b"\0" + content
    except (struct.error, ValueError, IndexError, OverflowError):
        return b""
    return sections


def tool_path(tool: str) -> str:
    """The command word of a load tool: hammer is built here, wrk and h2load are the system's."""
    return str(build_folder("glibc") / tool) if tool == "hammer" else tool


def hammer_to_copy() -> Path:
    """The hammer for another host: linked statically, where that could be built, because the other
    host may have another C library.
    """
    static = build_folder("static") / "hammer"
    return static if static.is_file() else build_folder("glibc") / "hammer"


def needed_programs(experiment: Experiment, variant: Variant, client: Client | None = None) -> list[str]:
    """The command words of all programs that a variant needs on this host: paths, or names to be
    looked for in PATH.
    """
    commands = [variant.command, *(helper.command for helper in experiment.helpers)]
    words = [command[0] for command in commands if command]
    # And what a command starts in its turn: env LD_BIND_NOW=1 {bin}/x.
    words += [word for command in commands for word in command[1:] if word.startswith("{bin}/")]
    if variant.server:
        words.append(str(build_folder(variant.build) / variant.server))
    if experiment.disk:
        words.append(str(build_folder("glibc") / "museum"))
    if variant.peer:
        peer = peers.load(variant.peer)
        words += [peer.program, *peer.helpers]
    if experiment.kind == "load" and variant.load != NO_LOAD:
        if not client:
            words.append(tool_path(variant.load))
        elif variant.load == "hammer":  # with CLIENT no other is on this host
            words.append(str(hammer_to_copy()))
    return expand_all(words, folders(variant))


def to_build(only: list[str]) -> list[str]:
    """The programs of ours, below build/, that these experiments start. InputError for an unknown
    experiment.
    """
    words = (word for one in chosen.load_all(only) for v in one.variants for word in needed_programs(one, v))
    return sorted({word for word in words if word.startswith(f"{BUILD}/")})


def missing(
    experiment: Experiment, variant: Variant, client: Client | None = None, many: bool = False
) -> Answer | None:
    """Why this variant cannot run here, or None; `many` as in needs.probe()."""
    if client and (lacking := client.why_not(experiment, variant)):
        return lacking
    own = ("fuse",) if experiment.disk else experiment.stage.needs if experiment.stage else ()
    of_peer = peers.load(variant.peer).needs if variant.peer else ()
    for need in (*experiment.needs, *variant.needs, *own, *of_peer):
        if client and need in LOAD_TOOLS:
            continue  # there, not here
        answer = needs.probe(need, many)
        if not answer.ok:
            return answer
    for word in needed_programs(experiment, variant, client):
        if find(word):
            continue
        if "/" not in word:
            return places.program(word)
        build_need = needs.BUILD_NEEDS.get(variant.build)
        answer = needs.probe(build_need) if build_need else Answer(True)
        if not answer.ok:
            return answer
        library = needs.missing_library(Path(word).name)
        return library or Answer(False, f"{word} is not built", "make variants")
    return None


def fingerprints(experiment: Experiment, variants: Iterable[Variant], client: Client | None = None) -> dict[str, str]:
    """Program -> hash, for all programs of these variants, for the settings of peers, and for the
    other host that the load comes from, if it does. No key names a folder above build/.
    """
    hashes = {"client": client.fingerprint()} if client else {}
    for variant in variants:
        for word in needed_programs(experiment, variant, client):
            path = find(word)
            if path:
                hashes[word.removeprefix(f"{BUILD}/")] = fingerprint(path)
        if variant.peer:
            # Only what is set: a key that comes or goes must throw no results away.
            settings = {k: v for k, v in asdict(peers.load(variant.peer)).items() if v}
            text = json.dumps(settings, sort_keys=True)
            hashes[f"peers/{variant.peer}"] = hashlib.sha256(text.encode()).hexdigest()
    return hashes
