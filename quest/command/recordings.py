"""The goals about recordings: make one, keep all of them, follow lines that moved, check that none has changed."""

from pathlib import Path

from quest.command.settings import Given
from quest.ground.errors import InputError, RepetitionError, Unsupported
from quest.ground.files import write_whole
from quest.measure import difference, form, needs, recorded, recorder, scene
from quest.measure.form import Recording
from quest.measure.recorder import Target

DEFAULT_SCENE = "slow"


def build_of(given: Given) -> Path:
    """BUILD=, the folder of all that is made."""
    return Path(given.get("BUILD", "build"))


def made(given: Given, server: str, name: str) -> Recording:
    """A recording of one of ours. InputError if it cannot be made here."""
    if server not in scene.read(name).servers:
        known = ", ".join(scene.read(name).servers)
        raise InputError(f"the scene {name} is not for {server}; it is for {known}")
    return of(Target(server, build_of(given) / "traced/bin" / server), name)


def of(target: Target, name: str) -> Recording:
    """InputError if it cannot be made here."""
    if not target.program.is_file():
        raise InputError(f"{target.program} is not built: make doctor says what is missing")
    try:
        return recorder.record(target, name, scene.read(name), needs.tracing())
    except (RepetitionError, Unsupported) as error:
        raise InputError(f"{target.name}, {name}: {error}") from None


def tell(path: Path, recording: Recording) -> None:
    """Where it is, and what it says."""
    text = recording.to_json()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text)
    overhead = recording.how.get("overhead")
    slower = f"; client A {overhead[1]} us, with the tracer {overhead[0]}" if overhead else ""
    print(f"{path}: {len(recording.calls)} calls, {len(recording.tasks)} tasks, {len(text)} bytes{slower}")
    for left in recording.left:
        print(f"    {left}")
    for moment in recording.moments:
        print(f"    {moment.t / 1000:7.1f} ms  {moment.head} {moment.rest}".rstrip())


def trace(given: Given) -> int:
    """One server; with LAB= a student's beside ours."""
    name = given.get("SCENE", DEFAULT_SCENE)
    folder = build_of(given) / "recordings"
    if "LAB" in given:
        return lab(given, name, folder)
    if "CH" not in given:
        raise InputError("which server? CH=02-fork: ours; LAB=02-fork: yours beside ours")
    tell(folder / f"{given['CH']}.{name}.json", made(given, given["CH"], name))
    return 0


def lab(given: Given, name: str, folder: Path) -> int:
    """Both, and where they first differ."""
    slug, work = given["LAB"], given.get("WORK", "work")
    ours = made(given, slug, name)
    yours = of(
        Target(slug, build_of(given) / "traced/work" / slug, folders=("code/", f"{work}/"), may_be_stopped=False), name
    )
    found = difference.first(ours, yours)
    if found:
        difference.mark(yours, found)
    tell(folder / f"{slug}.{name}.json", ours)
    tell(folder / f"{slug}.{name}.yours.json", yours)
    print(f"\nFirst difference: {found.text}" if found else "\nNo difference: the same calls, in the same order.")
    return 0


def keep(given: Given) -> int:
    """All that are committed, or those of CH= and SCENE=: into benchmarks/recordings."""
    wanted = [
        (server, name)
        for name in scene.names()
        if given.get("SCENE", name) == name
        for server in scene.read(name).servers
        if given.get("CH", server) == server
    ]
    if not wanted:
        raise InputError("no scene is for that server")
    for server, name in wanted:
        tell(form.FOLDER / f"{server}.{name}.json", made(given, server, name))
    return 0


def check(_: Given) -> int:
    """1 if a recorded line says something else now."""
    status = 0
    for path in form.all_paths():
        for fault in recorded.faults(form.read(path)):
            print(f"{path}: {fault}")
            status = 1
    if status:
        print("lines that have only moved: make move-recordings; others: make recordings CH=... SCENE=...")
    return status


def move(_: Given) -> int:
    """1 if a line has changed, and not only moved."""
    wrong = [f"{path}: {fault}" for path in form.all_paths() for fault in recorded.follow(path)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return 1 if wrong else 0
