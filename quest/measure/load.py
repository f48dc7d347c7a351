"""kind = "load": a fresh server on one core, a load generator on another.

What the server used is known when it has ended: wait4 then gives the processor time of the server
and of all children it has reaped. Work is therefore divided by all requests it ever got, those of
the warm-up too.
"""

import contextlib
import math
import signal
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field
from pathlib import Path

from quest.ground import places, processes
from quest.ground.errors import InputError, RepetitionError
from quest.ground.places import scratch
from quest.ground.processes import Process, Usage, running
from quest.measure import (
    cgroups,
    counters,
    disks,
    docroot,
    limits,
    load_tools,
    museum,
    peers,
    programs,
    remote,
)
from quest.measure.micro import usage_scalars
from quest.measure.noise import Noise
from quest.measure.programs import folders
from quest.measure.records import Repetition
from quest.measure.remote import FinishedLoad
from quest.measure.session import Context
from quest.measure.usable import LITTLE_TOLERANCE
from quest.spec.model import NO_LOAD, Experiment, Helper, Params, Stage, Variant
from quest.spec.plan import expand, expand_all


@dataclass
class LoadRun:
    """One repetition while it runs."""

    experiment: Experiment
    variant: Variant
    context: Context
    values: Params
    scratch: Path
    stop_signal: signal.Signals = signal.SIGTERM
    servers: list[Process] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    staged: disks.StagedDisk | None = None
    read_iops: int = 0  # reads a second that the staged disk is limited to; 0: not limited
    groups: list[Path] = field(default_factory=list)  # by which a server joins its control group
    kernel_before: dict[str, float] = field(default_factory=dict)  # KiB before the server started
    museum_disk: museum.MuseumDisk | None = None
    bystander_cpu_s: float = 0.0
    start_s: float = 0.0  # processor time of the servers before they were asked for anything
    requests: float = 0.0  # all that the servers have got
    load_cpu_s: float = 0.0
    load_s: float = 0.0  # how long the load tools have run
    repetition: Repetition = field(default_factory=Repetition)


def run(experiment: Experiment, variant: Variant, params: Params, context: Context) -> Repetition:
    """One repetition of the variant; errors as records.Repetition says."""
    with scratch() as folder:
        client = context.client
        address = client.address if client else remote.LOOPBACK
        values: Params = {
            **params, **folders(variant), "scratch": folder, "address": address,
            # What another host gives the load is not known.
            "load_cpus": 1 if client else max(1, len(context.placement.load)),
        }  # fmt: skip
        load_run = LoadRun(experiment, variant, context, values, Path(folder))
        cpus = context.placement.measured | context.placement.load
        noise = Noise.begin(cpus)
        usage, wall_s = _measure(load_run)
        noise.end()
        known_s = usage.cpu_s + load_run.bystander_cpu_s
        known_s += load_run.museum_disk.cpu_s if load_run.museum_disk else 0.0
        known_s += 0.0 if client else load_run.load_cpu_s
        noise.mark(load_run.repetition, known_s, wall_s)
    repetition = load_run.repetition
    measured = [repetition.scalars.get(name, 0.0) for name in ("bytes.total", "requests")]
    repetition.scalars |= work_scalars(
        usage,
        load_run.start_s,
        load_run.requests,
        load_run.load_s,
        load_run.load_cpu_s,
        measured[0] / measured[1] if all(measured) else 0.0,
    )
    repetition.mark(*context.placement.marks)
    if not context.own_network:
        repetition.mark("no-namespace")
    return repetition


def _measure(run: LoadRun) -> tuple[Usage, float]:
    with contextlib.ExitStack() as stack:
        if run.experiment.disk:
            cpus = run.context.placement.load
            mount = museum.mounted(run.experiment.disk, run.variant, run.values, cpus)
            run.museum_disk = stack.enter_context(mount)
        for helper in run.experiment.helpers:
            if not helper.after_server:
                stack.enter_context(_helper(run, helper))
        if not run.museum_disk:
            run.values["docroot"] = str(docroot.prepare(run.experiment.docroot).absolute())
        if run.experiment.stage:
            _stage(run, run.experiment.stage, stack)
        run.kernel_before = counters.kernel_memory()
        # One, or as many as the connections need that one process may not have.
        holds = max(1, _number(run, run.variant.holds or "1", '"holds"'))
        for _ in range(math.ceil(holds / limits.smallest(["descriptors"]).most)):
            run.servers.append(stack.enter_context(_server(run)))
        _publish(run)
        with contextlib.ExitStack() as beside:
            for helper in run.experiment.helpers:
                if helper.after_server and not helper.phases:
                    beside.enter_context(_helper(run, helper))
            _load_servers(run)
            _record_memory(run, "")
        usages = [processes.stop(server, run.stop_signal) for server in run.servers]
        # Our servers end with 0; a peer may let the signal end it.
        fine = (0, -run.stop_signal) if run.variant.peer else (0,)
        for server in run.servers:
            if server.status not in fine:
                raise RepetitionError(server.describe_end())
    together = Usage(*(sum(column) for column in zip(*map(astuple, usages), strict=True)))
    return together, run.servers[0].wall_s


def _record_memory(run: LoadRun, prefix: str) -> None:
    """Of the servers and of the kernel, now."""
    scalars = run.repetition.scalars
    for server in run.servers:
        for name, value in counters.session_memory(server.pid).items():
            key = f"{prefix}server_{name}"
            scalars[key] = scalars.get(key, 0.0) + value
    for name, value in counters.process_memory(run.servers[0].pid).items():
        scalars[f"{prefix}server_{name}"] = value
    for name, value in counters.kernel_memory().items():
        scalars[f"{prefix}kernel_{name}"] = value - run.kernel_before[name]


def _number(run: LoadRun, text: str, where: str) -> int:
    """A whole one, with its placeholders filled; 0 for "". InputError if it is none."""
    filled = expand(text, run.values)
    try:
        return int(float(filled or 0))
    except ValueError:
        raise InputError(f'{where}: "{filled}" ({text}) is no number') from None


def _stage(run: LoadRun, wanted: Stage, stack: contextlib.ExitStack) -> None:
    """The files move to a disk of their own, and the servers to come into a control group."""
    options = expand(wanted.mount, run.values)
    disk = stack.enter_context(disks.staged_disk(Path(str(run.values["docroot"])), options))
    run.staged, run.values["docroot"] = disk, str(disk.root)
    memory = _number(run, wanted.memory_mib, "[stage]") << 20  # 0 is no limit
    run.read_iops = _number(run, wanted.read_iops, "[stage]")
    group = cgroups.group(cgroups.Limits(memory, run.read_iops, device=disk.device))
    run.groups = stack.enter_context(group)


# ---- programs beside the load -------------------------------------------------------------------


@contextlib.contextmanager
def _helper(run: LoadRun, helper: Helper) -> Iterator[Process]:
    """Ready when it has printed a line. Ended by our signal, with the status that a shell gives for
    it, or with 0; else it has failed. A million connections are not closed in an instant.
    """
    words = expand_all(helper.command, run.values)
    with running(helper.name, words, run.context.placement.load, pipe=True) as process:
        processes.read_line(process, run.context.timeout)
        yield process
        processes.stop(process, patience=run.context.timeout)
        if process.status not in (0, -signal.SIGTERM, 128 + signal.SIGTERM):
            raise RepetitionError(process.describe_end())
        numbers = load_tools.parse_last_line(processes.rest_of_output(process))
        run.repetition.scalars |= {f"{helper.name}.{key}": v for key, v in numbers.items()}


@contextlib.contextmanager
def _server(run: LoadRun) -> Iterator[Process]:
    variant, values, cpus = run.variant, run.values, run.context.placement.measured
    if variant.peer:
        peer = peers.load(variant.peer)
        run.stop_signal = peer.stop
        probe = _probe(run)
        serving = peers.serving(peer, values, run.scratch, probe, cpus, run.groups)
        with serving as (process, port):
            run.ports.append(port)
            run.requests += 1  # the probe
            yield process
        return
    program = places.build_folder(variant.build) / variant.server
    words = [str(program), "-a", str(values["address"]), "-p", "0"]
    words += [*expand_all(variant.args, values), str(values["docroot"])]
    with running(variant.server, words, cpus, pipe=True, groups=run.groups) as process:
        run.ports.append(processes.listening_port(process))
        yield process


def _probe(run: LoadRun) -> peers.Probe:
    """The smallest file, for a look whether the server is there."""
    if run.museum_disk:
        return peers.Probe(museum.PAGE, museum.PAGE_BYTES)
    if not run.experiment.docroot.files:
        return peers.Probe()
    pattern, size = min(run.experiment.docroot.files.items(), key=lambda item: item[1])
    return peers.Probe(next(docroot.expand_name(pattern)), size)


def _publish(run: LoadRun) -> None:
    """{port}, {url} and {urls}, now that the ports are known."""
    urls = [f"http://{run.values['address']}:{port}" for port in run.ports]
    run.values["port"] = run.ports[0]
    run.values["url"] = urls[0]
    path = run.scratch / "urls"
    names = run.museum_disk.names if run.museum_disk else docroot.file_names(run.experiment.docroot)
    text = "".join(f"{url}/{name}\n" for name in names for url in urls)
    path.write_text(text, encoding="utf-8")
    run.values["urls"] = str(path)
    if client := run.context.client:
        client.put("urls", text.encode())


#: A request each 50 ms, until it is told to end.
BYSTANDER = ("-r", "20", "-s", "3600", "-t", "3600", "-c", "1000", "--json")


# ---- the load -----------------------------------------------------------------------------------


def _load_servers(run: LoadRun) -> None:
    """The warm-up, and the load or all its phases."""
    if run.variant.load == NO_LOAD:
        return
    tool = run.experiment.tools[run.variant.load]
    run.start_s = sum(counters.session_cpu_s(server.pid) for server in run.servers)
    before = counters.cpu_time(run.context.placement.measured)
    if tool.warmup:
        _one_load(run, (*tool.warmup, *run.variant.load_args), "", keep=False)
    if not run.experiment.phases:
        _one_load(run, (*tool.args, *run.variant.load_args), "", keep=True)
    for phase in run.experiment.phases:
        with contextlib.ExitStack() as stack:
            for helper in run.experiment.helpers:
                if phase.name in helper.phases:
                    stack.enter_context(_helper(run, helper))
            args = (*tool.args, *phase.args, *run.variant.load_args)
            _one_load(run, args, f"{phase.name}.", keep=True, may_fail=phase.may_fail)
            _record_memory(run, f"{phase.name}.")
    elapsed = counters.cpu_time(run.context.placement.measured).since(before)
    run.repetition.scalars["softirq_s"] = elapsed.softirq
    run.repetition.scalars["server_core_busy_s"] = elapsed.busy


def _one_load(run: LoadRun, args: tuple[str, ...], prefix: str, keep: bool, may_fail: bool = False) -> None:
    """Runs the load tool once. Its scalars are recorded with the prefix, if they are to be kept."""
    if keep and run.museum_disk:
        run.museum_disk.begin()
    before, times, stalled = counters.machine_events(), counters.cpu_ticks(), counters.io_pressure()
    staged, sent = run.staged.counters() if run.staged else None, counters.tcp_counters()
    with _bystander(run, keep) as waited:
        words, finished = _start_tool(run, args, may_fail)
    counted = counters.rates(before, counters.machine_events(), finished.here_s)
    counted |= counters.idle_shares(times, counters.cpu_ticks())
    counted |= counters.rates(stalled, counters.io_pressure(), finished.here_s, "share")
    available_s = finished.wall_s * int(run.values["load_cpus"])
    outcome = load_tools.parse(run.variant.load, finished.output, words, finished.usage, available_s)
    outcome.scalars |= counted | waited
    if run.staged and staged:
        done = run.staged.counters().since(staged)
        outcome.scalars |= counters.disk_scalars(done, finished.here_s, run.read_iops)
        if each := outcome.scalars.get("bytes_per_s"):
            # Rates, because the tool does not count the bytes of its warm-up.
            read = done.read_sectors * counters.SECTOR / finished.here_s
            outcome.scalars["from_memory_share"] = max(0.0, 1 - read / each)
    if not run.context.client:  # the other host's end of a connection counts its own
        outcome.scalars |= counters.tcp_scalars(sent, counters.tcp_counters(), outcome.requests)
    run.requests += outcome.requests
    run.load_cpu_s += finished.usage.cpu_s
    run.load_s += finished.here_s
    if keep:
        _record_outcome(run.repetition, outcome, prefix)
    if keep and run.museum_disk:
        run.repetition.scalars |= run.museum_disk.scalars(prefix)
        run.repetition.scalars |= run.museum_disk.in_disk_seconds(outcome.scalars, prefix)


@contextlib.contextmanager
def _bystander(run: LoadRun, wanted: bool) -> Iterator[dict[str, float]]:
    """Beside a load on a disk: a client that needs nothing of the disk, and how long it waits, in
    nanoseconds. A request that was not answered has waited until the end.
    """
    times: dict[str, float] = {}
    if not wanted or run.context.client or not (run.museum_disk or run.staged):
        yield times
        return
    names = [museum.PAGE] if run.museum_disk else docroot.file_names(run.experiment.docroot)
    words = [programs.tool_path("hammer"), *BYSTANDER, *([] if run.museum_disk else ["--head"])]
    words.append(f"{run.values['url']}/{names[0]}")
    with running("the bystander", words, run.context.placement.load, pipe=True) as process:
        yield times
        usage = processes.stop(process)
        numbers = load_tools.parse_last_line(processes.rest_of_output(process))
    run.bystander_cpu_s += usage.cpu_s
    if process.status == -signal.SIGTERM:
        return  # before it had begun: the load was over at once
    if "oldest_unfinished_s" not in numbers:
        raise RepetitionError(process.describe_end())
    unanswered = numbers["oldest_unfinished_s"] * 1e9
    times["bystander.median"] = numbers.get("total_from_intended.median", unanswered)
    times["bystander.worst"] = max(numbers.get("total_from_intended.max", 0.0), unanswered)


def _start_tool(run: LoadRun, args: tuple[str, ...], may_fail: bool) -> tuple[list[str], FinishedLoad]:
    """Runs the load tool here or on the other host; its command words, and what it has printed and
    used. RepetitionError if it fails.
    """
    name, context = run.variant.load, run.context
    if client := run.context.client:
        program = ["./hammer", "--allow-host", client.address] if name == "hammer" else [name]
        words = [*program, *expand_all(args, {**run.values, "urls": "urls"})]
        return words, client.run(name, words, context.timeout, context.tick, may_fail)
    words = [programs.tool_path(name), *expand_all(args, run.values)]
    process, output = processes.run(name, words, context.placement.load, context.timeout, context.tick, may_fail)
    assert process.usage is not None
    return words, FinishedLoad(output, process.usage, process.wall_s, process.wall_s)


def _record_outcome(repetition: Repetition, outcome: load_tools.Outcome, prefix: str) -> None:
    repetition.scalars |= {prefix + key: value for key, value in outcome.scalars.items()}
    repetition.histograms |= {prefix + key: value for key, value in outcome.histograms.items()}
    repetition.mark(*doubts(outcome.scalars))


def doubts(scalars: Mapping[str, float]) -> list[str]:
    """The marks of a load with these scalars."""
    applies = {
        "client-bound": scalars.get("client_bound"),
        "errors": scalars.get("failed"),
        "little": abs(scalars.get("little.ratio", 1.0) - 1.0) > LITTLE_TOLERANCE,
    }
    return [mark for mark, doubtful in applies.items() if doubtful]


def work_scalars(
    usage: Usage,
    start_s: float,
    requests: float,
    load_s: float,
    load_cpu_s: float,
    bytes_per_request: float,
) -> dict[str, float]:
    """What the server used, in its whole life and for each request (and gigabyte) that it got.

    A request's work is the server's processor time less the `start_s` of its start, which is no
    part of any request and weighs more the shorter the load is. How much of the start was in user
    mode is not known, so both modes give up the same share. `load_s`: how long the load ran;
    `load_cpu_s`: the processor time of the load generator; `bytes_per_request`: 0 if not known.
    """
    scalars = {"start_s": start_s, **usage_scalars(usage, "server_"), "requests_served": requests}
    if load_s > 0:
        scalars["server_cpu_share"] = usage.cpu_s / load_s
    if requests <= 0:
        return scalars
    scalars["server_voluntary_per_request"] = usage.voluntary / requests
    scalars["server_involuntary_per_request"] = usage.involuntary / requests
    if (cpu_s := usage.cpu_s - start_s) <= 0:
        return scalars
    share = cpu_s / usage.cpu_s
    work = {"cpu": cpu_s, "user": share * usage.user_s, "system": share * usage.system_s}
    scalars["requests_per_cpu_s"] = requests / cpu_s
    scalars["requests_per_both_cpu_s"] = requests / (cpu_s + load_cpu_s)
    scalars |= {f"{part}_us_per_request": s / requests * 1e6 for part, s in work.items()}
    if bytes_per_request:
        gigabytes = bytes_per_request * requests / 1e9
        scalars["bytes_per_cpu_s"] = gigabytes * 1e9 / cpu_s
        work |= {"client": load_cpu_s, "both": cpu_s + load_cpu_s}
        scalars |= {f"{part}_s_per_gb": s / gigabytes for part, s in work.items()}
    return scalars
