"""kind = "load": a fresh server on one core, a load generator on another.

What the server used is known when it has ended: wait4 then tells the processor time of the server
and of all children it has reaped. Work is therefore divided by all requests it ever got, those of
the warm-up too.
"""

import contextlib
import hashlib
import json
import math
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path

from quest.ground import places, processes
from quest.ground.cpus import WORKERS, narrowed
from quest.ground.errors import InputError, RepetitionError
from quest.ground.places import scratch
from quest.ground.processes import Process, Usage, running
from quest.measure import (
    cgroups,
    counters,
    disks,
    limits,
    load_tools,
    micro,
    peers,
    programs,
    remote,
)
from quest.measure.programs import folders
from quest.measure.records import Repetition
from quest.measure.session import Context
from quest.measure.usable import LITTLE_TOLERANCE
from quest.spec.model import NO_LOAD, Docroot, Experiment, Helper, Params, Stage, Variant
from quest.spec.plan import expand, expand_all


@dataclass
class Scene:
    """Everything one repetition needs while it runs."""

    experiment: Experiment
    variant: Variant
    context: Context
    values: Params
    scratch: Path
    stop_signal: signal.Signals = signal.SIGTERM
    servers: list[Process] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    staged: disks.StagedDisk | None = None
    read_iops: int = 0  # of the staged disk, where that is limited
    groups: list[Path] = field(default_factory=list)  # by which a server joins its control group
    kernel: dict[str, float] = field(default_factory=dict)  # before the server started
    disk: micro.Mounted | None = None
    bystander_cpu_s: float = 0.0
    start_s: float = 0.0  # what the servers had computed before they were asked for anything
    requests: float = 0.0
    load_cpu_s: float = 0.0
    load_s: float = 0.0
    repetition: Repetition = field(default_factory=Repetition)


def run(experiment: Experiment, variant: Variant, params: Params, context: Context) -> Repetition:
    if experiment.pin == WORKERS:
        context = replace(context, placement=narrowed(context.placement, int(params["workers"])))
    with scratch() as folder:
        client = context.client
        address = client.address if client else remote.LOOPBACK
        values: Params = {
            **params, **folders(variant), "scratch": folder, "address": address,
            # What another host gives the load is not known.
            "load_cpus": 1 if client else max(1, len(context.placement.load)),
        }  # fmt: skip
        scene = Scene(experiment, variant, context, values, Path(folder))
        cpus = context.placement.measured | context.placement.load
        noise = micro.Noise.begin(cpus)
        usage, wall_s = _measure(scene)
        noise.end()
        known = usage.cpu_s + (scene.disk.cpu_s if scene.disk else 0.0) + scene.bystander_cpu_s
        noise.mark(scene.repetition, known + (0.0 if client else scene.load_cpu_s), wall_s)
    _summarize(scene, usage)
    scene.repetition.mark(*context.placement.marks)
    if not context.own_network:
        scene.repetition.mark("no-namespace")
    return scene.repetition


def _measure(scene: Scene) -> tuple[Usage, float]:
    with contextlib.ExitStack() as stack:
        if scene.experiment.disk:
            cpus = scene.context.placement.load
            mount = micro.mounted_museum(scene.experiment.disk, scene.variant, scene.values, cpus)
            scene.disk = stack.enter_context(mount)
        for helper in scene.experiment.helpers:
            if not helper.after_server:
                stack.enter_context(_helper(scene, helper))
        if not scene.disk:
            scene.values["docroot"] = str(prepare_docroot(scene.experiment.docroot).absolute())
        if scene.experiment.stage:
            _stage(scene, scene.experiment.stage, stack)
        scene.kernel = counters.kernel_memory()
        # One, or as many as the connections need that one process may not have.
        holds = int(expand(scene.variant.holds or "1", scene.values))
        for _ in range(math.ceil(holds / limits.smallest(["descriptors"]).most)):
            scene.servers.append(stack.enter_context(_server(scene)))
        _publish(scene)
        with contextlib.ExitStack() as beside:
            for helper in scene.experiment.helpers:
                if helper.after_server and not helper.phases:
                    beside.enter_context(_helper(scene, helper))
            _load(scene)
            _note_memory(scene, "")
        usages = [processes.stop(server, scene.stop_signal) for server in scene.servers]
        # Our servers end with 0; a peer may let the signal end it.
        fine = (0, -scene.stop_signal) if scene.variant.peer else (0,)
        for server in scene.servers:
            if server.status not in fine:
                raise RepetitionError(server.describe_end())
    together = Usage(*(sum(column) for column in zip(*map(astuple, usages), strict=True)))
    return together, scene.servers[0].wall_s


def _note_memory(scene: Scene, prefix: str) -> None:
    scalars = scene.repetition.scalars
    for server in scene.servers:
        for name, value in counters.memory_of(server.pid).items():
            key = f"{prefix}server_{name}"
            scalars[key] = scalars.get(key, 0.0) + value
    for name, value in counters.account_of(scene.servers[0].pid).items():
        scalars[f"{prefix}server_{name}"] = value
    for name, value in counters.kernel_memory().items():
        scalars[f"{prefix}kernel_{name}"] = value - scene.kernel[name]


def _stage(scene: Scene, wanted: Stage, stack: contextlib.ExitStack) -> None:
    """The files move to a disk of their own, and the servers to come into a control group."""

    def amount(text: str) -> int:
        """0 is no limit."""
        filled = expand(text, scene.values)
        try:
            return int(float(filled or 0))
        except ValueError:
            raise InputError(f'[stage]: "{filled}" ({text}) is no number') from None

    options = expand(wanted.mount, scene.values)
    disk = stack.enter_context(disks.staged_disk(Path(str(scene.values["docroot"])), options))
    scene.staged, scene.values["docroot"] = disk, str(disk.root)
    memory, scene.read_iops = amount(wanted.memory_mib) << 20, amount(wanted.read_iops)
    limits = cgroups.Limits(memory, scene.read_iops, device=disk.device)
    scene.groups = stack.enter_context(cgroups.group(limits))


# ---- programs beside the load -------------------------------------------------------------------


@contextlib.contextmanager
def _helper(scene: Scene, helper: Helper) -> Iterator[Process]:
    """Ready when it has printed a line. Ended by our signal, with the status by which a shell tells
    of it, or with 0; else it has failed. A million connections are not closed in an instant.
    """
    words = expand_all(helper.command, scene.values)
    with running(helper.name, words, scene.context.placement.load, pipe=True) as process:
        processes.read_line(process, scene.context.timeout)
        yield process
        processes.stop(process, patience=scene.context.timeout)
        if process.status not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise RepetitionError(process.describe_end())
        said = load_tools.read_helper(processes.rest_of_output(process))
        scene.repetition.scalars |= {f"{helper.name}.{key}": v for key, v in said.items()}


@contextlib.contextmanager
def _server(scene: Scene) -> Iterator[Process]:
    variant, values, cpus = scene.variant, scene.values, scene.context.placement.measured
    if variant.peer:
        peer = peers.load(variant.peer)
        scene.stop_signal = peer.stop
        probe = _probe(scene)
        with peers.serving(peer, values, scene.scratch, probe, cpus, scene.groups) as found:
            process, port = found
            scene.ports.append(port)
            scene.requests += 1  # the probe
            yield process
        return
    program = places.build_folder(variant.build) / variant.server
    words = [str(program), "-a", str(values["address"]), "-p", "0"]
    words += [*expand_all(variant.args, values), str(values["docroot"])]
    with running(variant.server, words, cpus, pipe=True, groups=scene.groups) as process:
        scene.ports.append(processes.listening_port(process))
        yield process


def _probe(scene: Scene) -> peers.Probe:
    """The smallest file, for a look whether the server is there."""
    if scene.disk:
        return peers.Probe(micro.PAGE, micro.PAGE_BYTES)
    if not scene.experiment.docroot.files:
        return peers.Probe()
    pattern, size = min(scene.experiment.docroot.files.items(), key=lambda item: item[1])
    return peers.Probe(next(expand_name(pattern)), size)


def _publish(scene: Scene) -> None:
    """{port}, {url} and {urls}, now that the ports are known."""
    urls = [f"http://{scene.values['address']}:{port}" for port in scene.ports]
    scene.values["port"] = scene.ports[0]
    scene.values["url"] = urls[0]
    path = scene.scratch / "urls"
    names = scene.disk.names if scene.disk else file_names(scene.experiment.docroot)
    text = "".join(f"{url}/{name}\n" for name in names for url in urls)
    path.write_text(text, encoding="utf-8")
    scene.values["urls"] = str(path)
    if client := scene.context.client:
        client.put("urls", text.encode())


#: A request each 50 ms, until it is told to end.
BYSTANDER = ("-r", "20", "-s", "3600", "-t", "3600", "-c", "1000", "--json")


# ---- the load -----------------------------------------------------------------------------------


def _load(scene: Scene) -> None:
    if scene.variant.load == NO_LOAD:
        return
    tool = scene.experiment.tools[scene.variant.load]
    scene.start_s = sum(counters.cpu_of(server.pid) for server in scene.servers)
    before = counters.cpu_time(scene.context.placement.measured)
    if tool.warmup:
        _run_tool(scene, (*tool.warmup, *scene.variant.load_args), "", keep=False)
    if not scene.experiment.phases:
        _run_tool(scene, (*tool.args, *scene.variant.load_args), "", keep=True)
    for phase in scene.experiment.phases:
        with contextlib.ExitStack() as stack:
            for helper in scene.experiment.helpers:
                if phase.name in helper.phases:
                    stack.enter_context(_helper(scene, helper))
            args = (*tool.args, *phase.args, *scene.variant.load_args)
            _run_tool(scene, args, f"{phase.name}.", keep=True, may_fail=phase.may_fail)
            _note_memory(scene, f"{phase.name}.")
    elapsed = counters.cpu_time(scene.context.placement.measured).since(before)
    scene.repetition.scalars["softirq_s"] = elapsed.softirq
    scene.repetition.scalars["server_core_busy_s"] = elapsed.busy


def _run_tool(
    scene: Scene, args: tuple[str, ...], prefix: str, keep: bool, may_fail: bool = False
) -> None:
    if keep and scene.disk:
        scene.disk.begin()
    before, times, stalled = counters.events(), counters.machine_times(), counters.pressure()
    staged, sent = scene.staged.counters() if scene.staged else None, counters.tcp_counters()
    with _bystander(scene, keep) as waited:
        words, ran = _ran(scene, args, may_fail)
    counted = counters.rates(before, counters.events(), ran.here_s)
    counted |= counters.shares(times, counters.machine_times())
    counted |= counters.rates(stalled, counters.pressure(), ran.here_s, "share")
    available_s = ran.wall_s * int(scene.values["load_cpus"])
    outcome = load_tools.read(scene.variant.load, ran.output, words, ran.usage, available_s)
    outcome.scalars |= counted | waited
    if scene.staged and staged:
        done = scene.staged.counters().since(staged)
        outcome.scalars |= counters.disk_scalars(done, ran.here_s, scene.read_iops)
        if each := outcome.scalars.get("bytes_per_s"):
            # Rates, because the tool does not count the bytes of its warm-up.
            read = done.read_sectors * counters.SECTOR / ran.here_s
            outcome.scalars["from_memory_share"] = max(0.0, 1 - read / each)
    if not scene.context.client:  # the other host's end of a connection counts its own
        outcome.scalars |= counters.tcp_scalars(sent, counters.tcp_counters(), outcome.requests)
    scene.requests += outcome.requests
    scene.load_cpu_s += ran.usage.cpu_s
    scene.load_s += ran.here_s
    if keep:
        _keep(scene.repetition, outcome, prefix)
    if keep and scene.disk:
        scene.repetition.scalars |= scene.disk.scalars(prefix)
        scene.repetition.scalars |= scene.disk.at_its_pace(outcome.scalars, prefix)


@contextlib.contextmanager
def _bystander(scene: Scene, wanted: bool) -> Iterator[dict[str, float]]:
    """Beside a load on a disk: a client that needs nothing of the disk, and how long it waits. Of a
    request that was not answered it is known how long it has waited until the end.
    """
    times: dict[str, float] = {}
    if not wanted or scene.context.client or not (scene.disk or scene.staged):
        yield times
        return
    names = [micro.PAGE] if scene.disk else file_names(scene.experiment.docroot)
    words = [programs.tool_path("hammer"), *BYSTANDER, *([] if scene.disk else ["--head"])]
    words.append(f"{scene.values['url']}/{names[0]}")
    with running("the bystander", words, scene.context.placement.load, pipe=True) as process:
        yield times
        usage = processes.stop(process)
        said = load_tools.read_helper(processes.rest_of_output(process))
    scene.bystander_cpu_s += usage.cpu_s
    if process.status == -signal.SIGTERM:
        return  # before it had begun: the load was over at once
    if "oldest_unfinished_s" not in said:
        raise RepetitionError(process.describe_end())
    unanswered = said["oldest_unfinished_s"] * 1e9
    times["bystander.median"] = said.get("total_from_intended.median", unanswered)
    times["bystander.worst"] = max(said.get("total_from_intended.max", 0.0), unanswered)


def _ran(scene: Scene, args: tuple[str, ...], may_fail: bool) -> tuple[list[str], remote.Ran]:
    """The words of the load, and what has come of it."""
    name, context = scene.variant.load, scene.context
    if client := scene.context.client:
        program = ["./hammer", "--allow-host", client.address] if name == "hammer" else [name]
        words = [*program, *expand_all(args, {**scene.values, "urls": "urls"})]
        return words, client.run(name, words, context.timeout, context.tick)
    words = [programs.tool_path(name), *expand_all(args, scene.values)]
    process, output = processes.run(
        name, words, context.placement.load, context.timeout, context.tick, may_fail
    )
    assert process.usage is not None
    return words, remote.Ran(output, process.usage, process.wall_s, process.wall_s)


def _keep(repetition: Repetition, outcome: load_tools.Outcome, prefix: str) -> None:
    scalars = outcome.scalars
    repetition.scalars |= {prefix + key: value for key, value in scalars.items()}
    repetition.histograms |= {prefix + key: value for key, value in outcome.histograms.items()}
    doubts = {
        "client-bound": scalars.get("client_bound"),
        "errors": scalars.get("failed"),
        "little": abs(scalars.get("little.ratio", 1.0) - 1.0) > LITTLE_TOLERANCE,
    }
    repetition.mark(*(mark for mark, doubt in doubts.items() if doubt))


def _summarize(scene: Scene, usage: Usage) -> None:
    """The harness's own scalars. A request's work is what the server has computed in its whole life
    less its start, which is no part of any request and weighs more the shorter the load is; how
    much of that was in user mode is not known, so both modes give up the same share.
    """
    scalars, requests = scene.repetition.scalars, scene.requests
    scalars["start_s"] = scene.start_s
    scalars |= micro.usage_scalars(usage, "server_")
    scalars["requests_served"] = requests
    if scene.load_s > 0:
        scalars["server_cpu_share"] = usage.cpu_s / scene.load_s
    if requests > 0:
        scalars["server_voluntary_per_request"] = usage.voluntary / requests
        scalars["server_involuntary_per_request"] = usage.involuntary / requests
    if (cpu_s := usage.cpu_s - scene.start_s) > 0 and requests > 0:
        share = cpu_s / usage.cpu_s
        work = {"cpu": cpu_s, "user": share * usage.user_s, "system": share * usage.system_s}
        scalars["requests_per_cpu_s"] = requests / cpu_s
        scalars |= {f"{who}_us_per_request": s / requests * 1e6 for who, s in work.items()}
        if scalars.get("bytes.total") and scalars.get("requests"):
            gigabytes = scalars["bytes.total"] / scalars["requests"] * requests / 1e9
            scalars["bytes_per_cpu_s"] = gigabytes * 1e9 / cpu_s
            work |= {"client": scene.load_cpu_s, "both": cpu_s + scene.load_cpu_s}
            scalars |= {f"{who}_s_per_gb": s / gigabytes for who, s in work.items()}


# ---- The files a load experiment asks for --------------------------------------------------------
#
# Made once under build/docroot, by size, with fixed contents.

RANGE = re.compile(r"\{(\d+)\.\.(\d+)\}")
WRITTEN = 64 << 20  #: bytes of a file; beyond, it is a hole: some experiments ask for gigabytes


def expand_name(pattern: str) -> Iterator[str]:
    """`pool/{00..99}.bin` -> the hundred names; the width of the first number is kept."""
    match = RANGE.search(pattern)
    if not match:
        yield pattern
        return
    first, last = match.groups()
    for number in range(int(first), int(last) + 1):
        yield from expand_name(RANGE.sub(f"{number:0{len(first)}}", pattern, count=1))


def file_names(docroot: Docroot) -> list[str]:
    return [name for pattern in docroot.files for name in expand_name(pattern)]


def file_content(name: str, size: int) -> bytes:
    """Differs from file to file, is the same on every machine."""
    line = name.encode() + b"\n"
    return (line * (size // len(line) + 1))[:size]


def write_file(path: Path, name: str, size: int) -> None:
    with path.open("wb") as file:
        file.write(file_content(name, min(size, WRITTEN)))
        file.truncate(size)


def prepare_docroot(docroot: Docroot) -> Path:
    """The folder with these files; made if it is not there yet."""
    text = json.dumps(sorted(docroot.files.items()))
    folder = places.BUILD / "docroot" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Renamed into place when complete: a run that was killed leaves no half docroot that looks
    # whole.
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix="new-"))
    try:
        for pattern, size in docroot.files.items():
            for name in expand_name(pattern):
                path = unfinished / name
                path.parent.mkdir(parents=True, exist_ok=True)
                write_file(path, name, size)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder
