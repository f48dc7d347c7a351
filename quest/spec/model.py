"""What an experiment is: plain data, made by experiment_file.py from a TOML file."""

from collections.abc import Mapping
from dataclasses import dataclass, field

Value = int | float | str
Params = dict[str, Value]

# By effort: a finished set of a later profile also answers a request for an earlier one.
PROFILES = ("smoke", "headline", "quick", "full")
LOAD_TOOLS = ("hammer", "wrk", "h2load")
NO_ERROR = ("", "-", "0")  # in the column `error` of samples
NO_LOAD = "none"  # the helpers are all that visits the server
# Operations of a [[number]]: what of the law of usl.py, fitted over x; and all there are.
LAWS = ("usl_lambda", "usl_sigma", "usl_kappa", "usl_peak")
OPERATIONS = ("ratio", "difference", "inverse", "value", *LAWS)
AA = "+aa"  # behind the name of a variant that is run a second time in the round
# What can come of a claim; "not judged": measured, and not well enough.
VERDICTS = ("holds", "changed", "reversed", "no difference seen", "not judged", "not measured here")
LEAST = 6  # repetitions for an interval or a test
LEAST_WORKERS = 4  # for that law; with fewer the terms of σ and κ are too much alike


@dataclass(frozen=True)
class Metric:
    """What is taken from a repetition: a column of samples, reduced, or one of its scalars."""

    name: str
    title: str
    unit: str = ""
    column: str = ""
    scalar: str = ""
    scale: float = 1.0
    reduce: str = "median"
    better: str = ""


@dataclass(frozen=True)
class Axis:
    """x: a column of the samples (in bins of `bin_width`), or a parameter."""

    title: str
    unit: str = ""
    column: str = ""
    parameter: str = ""
    bin_width: float = 0.0


@dataclass(frozen=True)
class Variant:
    """One of the things that are compared."""

    name: str
    title: str
    build: str = "glibc"
    command: tuple[str, ...] = ()
    server: str = ""
    peer: str = ""
    args: tuple[str, ...] = ()
    holds: str = ""  # connections; more servers are started if one may not have so many
    load: str = "hammer"
    load_args: tuple[str, ...] = ()
    disk_args: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    aa: bool = False
    aa_at: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    sweep: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    rename: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Profile:
    """How much is done: rounds, values of placeholders, sweeps that differ from the general one."""

    name: str
    rounds: int
    values: Mapping[str, Value] = field(default_factory=dict)
    sweep: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    seconds: float = 30.0
    timeout: float = 120.0
    needs: tuple[str, ...] = ()  # of this profile alone: consent to what others might notice
    by_name: bool = False  # measured only if ONLY names it: the whole profile has to end some time


@dataclass(frozen=True)
class Derived:
    """A number computed from metrics: a ratio of two, a difference, an inverse, a scaled one, or
    what a law has for their growth.
    """

    key: str
    operation: str
    operands: tuple[str, ...]
    at: Value | None = None
    scale: float = 1.0
    unit: str = ""


@dataclass(frozen=True)
class ThenRow:
    """What a source reports of one thing, in its own unit; `low` and `high` where it gives several.

    `variant` and `x` are what stands beside it here. Where nothing can, `why` says why.
    """

    value: float
    title: str = ""
    low: float | None = None
    high: float | None = None
    variant: str = ""
    x: str = ""
    why: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """As the file has it: `variant` or `variant@x`."""
        return f"{self.variant}@{self.x}" if self.x else self.variant

    def operand(self, metric: str) -> str:
        return f"{self.variant}.{metric}" + (f"@{self.x}" if self.x else "")


@dataclass(frozen=True)
class Then:
    """A table of a source, to be printed beside ours. `scale` turns its unit into the metric's."""

    key: str
    title: str
    source: str
    metric: str
    base: str  # the name of the row that the ratios are relative to
    rows: tuple[ThenRow, ...]
    unit: str = ""
    scale: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def base_row(self) -> ThenRow:
        return next(row for row in self.rows if row.variant and row.name == self.base)


@dataclass(frozen=True)
class Helper:
    """A program that runs beside the server: a disk, a herd of idle clients, a stat helper."""

    name: str
    command: tuple[str, ...]
    after_server: bool = False
    phases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phase:
    """One of several loads on the same server. Its scalars carry its name: `during.failed`.

    `may_fail`: that nobody was served is a result.
    """

    name: str
    args: tuple[str, ...] = ()
    may_fail: bool = False


@dataclass(frozen=True)
class LoadTool:
    args: tuple[str, ...] = ()
    warmup: tuple[str, ...] = ()


@dataclass(frozen=True)
class Docroot:
    """Files to serve, by name pattern, and their sizes in bytes."""

    files: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Disk:
    """A museum disk to be mounted: its pools of files, NAME=COUNTxSIZE, and its options."""

    pools: tuple[str, ...]
    args: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stage:
    """Numbers, or placeholders; "" is no limit. `mount`: options; "" mounts for reading only."""

    memory_mib: str = ""
    read_iops: str = ""
    mount: str = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Probes of needs.py without which it cannot be set."""
        limits = {"memory-cgroup": self.memory_mib, "io-throttle": self.read_iops}
        return ("loop-device", *(name for name, wanted in limits.items() if wanted))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    id: str
    title: str
    question: str
    kind: str
    source: tuple[str, ...] = ()
    chapters: tuple[str, ...] = ()
    headline: bool = False
    needs: tuple[str, ...] = ()
    pin: str
    variants: tuple[Variant, ...]
    profiles: Mapping[str, Profile]
    sweep: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    axis: Axis | None = None
    metrics: tuple[Metric, ...] = ()
    derived: tuple[Derived, ...] = ()
    caps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    docroot: Docroot = field(default_factory=Docroot)
    tools: Mapping[str, LoadTool] = field(default_factory=dict)
    helpers: tuple[Helper, ...] = ()
    phases: tuple[Phase, ...] = ()
    disk: Disk | None = None
    thens: tuple[Then, ...] = ()
    stage: Stage | None = None

    def variant(self, name: str) -> Variant:
        """The variant of that name; `x+aa` is x, run a second time in the round."""
        plain = name.removesuffix(AA)
        return next(variant for variant in self.variants if variant.name == plain)

    def title_of(self, label: str) -> str:
        """As the file calls the variant of a series, with the other parameters of the series."""
        name, *params = label.split(",")
        again = ["again"] if name.endswith(AA) else []
        return ", ".join([self.variant(name).title, *again, *params])

    def metric(self, name: str) -> Metric:
        return next(metric for metric in self.metrics if metric.name == name)

    def headline_profile(self, wanted: str) -> str:
        """`make` measures a headline experiment shortly: [profile.headline] in place of quick."""
        return "headline" if wanted == "quick" and "headline" in self.profiles else wanted


def x_text(x: Value | None) -> str:
    """As in keys and tables: 100, 0.5, close."""
    if x is None:
        return "-"
    return x if isinstance(x, str) else f"{x:.10g}"
