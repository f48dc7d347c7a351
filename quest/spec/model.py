"""What an experiment is: the form of benchmarks/experiments/ID.toml, and plain data once it is
read.

A field with a Doc is a key of the file, under the name `key` where the two differ. They are read by
quest/ground/toml.py, and printed into benchmarks/README.md by quest/report/fields.py. What only a
whole experiment can tell, as a placeholder without a value, is checked in coherence.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from quest.ground.toml import Doc, Rule

Value = int | float | str
Params = dict[str, Value]

# By effort: a finished set of a later profile also answers a request for an earlier one.
PROFILES = ("smoke", "headline", "quick", "full")
KINDS = ("micro", "load", "trace")
PINS = {"micro": "one", "load": "apart", "trace": "none"}  # where the file does not say
LOAD_TOOLS = ("hammer", "wrk", "h2load")
NO_ERROR = ("", "-", "0")  # in the column `error` of samples
NO_LOAD = "none"  # the helpers are all that visits the server
RESOURCES = ("processes", "descriptors", "connections", "memory", "mappings", "processors")
# As experiments and claims.toml name the sources -> how a table is headed.
SOURCES = {
    "talk": "the talk, 2003",
    "page": "the benchmark page, 2003",
    "lighty": "lighttpd 1.5.0 and Linux AIO, 2006",
    "small-files": "lighttpd and small files, 2006",
    "perlbal": "Perlbal and lighttpd, 2006",
    "raw-io": "raw I/O with lighttpd 1.5.0, 2007",
    "wiki": "lighttpd's wiki, 2007",
}
OPERATIONS = ("ratio", "difference", "inverse", "value")  # of a [[number]]
AA = "+aa"  # behind the name of a variant that is run a second time in the round
# What can come of a claim (chapters, "How to read a word"). Those with "in the model" and "by a test", "never so" and
# "not decided" are the ledger's (quest/report/claims.py: in_words); the others are what a rule says.
HOLDS, CHANGED, REVERSED, NO_DIFFERENCE = "holds", "changed", "reversed", "no difference seen"
IN_MODEL, NOT_IN_MODEL = "in the model: holds", "in the model: fails"
BY_TEST, NOT_BY_TEST = "by a test: holds", "by a test: fails"
FASTER_NOW, NEVER_SO = "faster now", "never so"
NOT_DECIDED, NEAR, DEPENDS = "not decided", "near the line", "depends on the processor"
UNDECIDED = NOT_JUDGED, FAILED, NOT_MEASURED = "not judged", "failed", "not measured here"
VERDICTS = (
    HOLDS, IN_MODEL, BY_TEST, FASTER_NOW, CHANGED, REVERSED, NEVER_SO, NOT_IN_MODEL, NOT_BY_TEST, NO_DIFFERENCE,
    NOT_DECIDED, NEAR, DEPENDS, *UNDECIDED,
)  # fmt: skip
# How a claim stands that nothing decides, by its kind; the others stand as their verdict says.
WITHOUT_RULE = {"other-system": "another system", "historical": "historical"}
NO_RULE = "no rule"
STANDINGS = (*VERDICTS, *WITHOUT_RULE.values(), NO_RULE)
LEAST = 6  # repetitions for an interval or a test

# ---- what a key may hold -------------------------------------------------------------------------

Texts = tuple[str, ...]
Words = Annotated[tuple[str, ...], Rule(filled=True)]
Filled = Annotated[str, Rule(filled=True)]
Values = Mapping[str, Value]
Points = Annotated[
    tuple[Value, ...],
    Rule(filled=True, distinct=True, must="be a list of numbers or texts, each once"),
]
Sweep = Mapping[str, Points]
Id = Annotated[str, Rule(pattern="[a-z0-9]+(-[a-z0-9]+)*", must='be lower-case words joined by "-"')]
Key = Annotated[
    str,
    Rule(pattern="[a-z0-9]+([-_][a-z0-9]+)*", must='be lower-case words joined by "-" or "_"'),
]
Operands = Annotated[tuple[str, ...], Rule(count=(2,), must='be a list of two texts, as "variant.metric"')]
Amount = Annotated[
    Annotated[int, Rule(above=0)] | Annotated[str, Rule(pattern=r"\{[a-z_][a-z0-9_]*\}")],
    Rule(must="be a whole number above 0, or a placeholder"),
]
Resources = Annotated[
    tuple[Annotated[str, Rule(choices=RESOURCES)], ...],
    Rule(filled=True, single=True, must=f"be among {', '.join(RESOURCES)}"),
]
FileName = Annotated[str, Rule(pattern=r"(?!/)(?!(.*/)?\.\.(/|$)).*", must="lie below the docroot")]


def one_of(record: object, *names: str) -> str:
    """A fault if not exactly one of these fields is given."""
    if sum(bool(getattr(record, name)) for name in names) == 1:
        return ""
    if len(names) == 2:
        return 'one of "{}" and "{}" is needed'.format(*names)
    return f"exactly one of {', '.join(names)} is needed"


# ---- the tables of the file ----------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    """What is taken from a repetition: a column of samples, reduced, or one of its scalars."""

    name: Annotated[Key, Doc("of its numbers in keys: ID.VARIANT.NAME")]
    title: Annotated[str, Doc("in tables and figures; else the name")] = ""
    unit: Annotated[str, Doc("after scaling")] = ""
    column: Annotated[Filled, Doc("a column of the samples", example='"fork_ns"')] = ""
    scalar: Annotated[Filled, Doc("or one number of the repetition", example='"total.p99"')] = ""
    scale: Annotated[float, Doc("what each value is multiplied by")] = 1.0
    reduce: Annotated[
        str,
        Rule(choices=("median", "min", "max", "p90", "p99", "sum", "jain")),
        Doc("makes one number of the column of a repetition"),
    ] = "median"
    better: Annotated[str, Rule(choices=("lower", "higher")), Doc("what a rule calls faster; without it none is")] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)

    def fault(self) -> str:
        return one_of(self, "column", "scalar")


@dataclass(frozen=True)
class Axis:
    """x: a column of the samples (in bins of `bin_width`), or a parameter."""

    title: Annotated[str, Doc("of the axis")]
    unit: Annotated[str, Doc("of x")] = ""
    column: Annotated[Filled, Doc("x is a column of the samples", example='"live"')] = ""
    parameter: Annotated[Filled, Doc("or a parameter", example='"connections"')] = ""
    bin_width: Annotated[float, Rule(above=0), Doc("of a column: samples as near as that are one point")] = 0.0

    def fault(self) -> str:
        if self.bin_width and not self.column:
            return '"bin_width" goes with "column"'
        return one_of(self, "column", "parameter")


@dataclass(frozen=True)
class Variant:
    """One of the things that are compared."""

    name: Annotated[
        str,
        Rule(pattern="[A-Za-z0-9][A-Za-z0-9_-]*", must='may hold letters, digits, "-" and "_"'),
        Doc("of the series in keys and tables"),
    ]
    title: Annotated[
        str,
        Rule(pattern="[^'\"\\t\\n]*", must="be a text without quotes"),
        Doc("in figures; else the name"),
    ] = ""
    build: Annotated[
        str,
        Rule(choices=("glibc", "static", "static-pie", "diet", "musl", "asan", "tsan")),
        Doc("whose programs {bin} holds"),
    ] = "glibc"
    command: Annotated[
        Words,
        Doc(
            "micro. {bin} is build/bin or the folder of the build; {children} a value, "
            "{children*2} twice that; "
            "{scratch} a private folder",
            example='["{bin}/x", ..]',
        ),
    ] = ()
    server: Annotated[Filled, Doc("load and trace", example='"02-fork"')] = ""
    peer: Annotated[Filled, Doc("or the name of a file of peers/ (below)", example='"nginx"')] = ""
    args: Annotated[Texts, Doc("of the server")] = ()
    holds: Annotated[
        str,
        Doc(
            "load: connections. Where one process may not have so many descriptors, several "
            "servers are started; "
            "{port} and {url} are of the first, {urls} is of all in turn; {load_cpus}: processors "
            "of the load",
            example='"{connections}"',
        ),
    ] = ""
    load: Annotated[
        str,
        Rule(choices=(*LOAD_TOOLS, NO_LOAD)),
        Doc("the tool; none: only helpers visit the server"),
    ] = "hammer"
    load_args: Annotated[Texts, Doc("are added to the tool's")] = ()
    disk_args: Annotated[Texts, Doc("are added to the args of [disk]", example='["--keep"]')] = ()
    needs: Annotated[Texts, Doc("as the experiment's, of this variant alone")] = ()
    aa: Annotated[
        bool | Annotated[Sweep, Rule(filled=True)],
        Rule(must="be true, false, or a table of parameters"),
        Doc(
            "it runs a second time in each round, as NAME+aa: what the two differ by is the noise "
            "floor; "
            "a table of parameters, as { connections = [16] }: only there",
            example="true",
        ),
    ] = False
    values: Annotated[Values, Doc("values for placeholders", key="set")] = field(default_factory=dict)
    sweep: Annotated[Sweep, Doc("replaces lines of [sweep]")] = field(default_factory=dict)
    rename: Annotated[
        Mapping[str, str],
        Doc("calls a column of the output otherwise", example='{ live = "x" }'),
    ] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "title", self.title or self.name)

    @property
    def aa_at(self) -> Sweep:
        """The points of the second run: parameters and their values; all points if empty."""
        return {} if isinstance(self.aa, bool) else self.aa

    def fault(self) -> str:
        return '"holds" goes with "server"' if self.holds and not self.server else ""


@dataclass(frozen=True)
class Profile:
    """How much is done. smoke, quick and full are needed; `make` measures headline in place of
    quick, if it is there.
    """

    name: str
    rounds: Annotated[int, Rule(least=1), Doc("how often each point is measured", example="2")]
    values: Annotated[Values, Doc("values for placeholders", key="set", example="{ children = 200 }")] = field(
        default_factory=dict
    )
    sweep: Annotated[Sweep, Doc("replaces lines of [sweep]")] = field(default_factory=dict)
    seconds: Annotated[float, Doc("expected duration of the whole, for the time left")] = 30.0
    timeout: Annotated[float, Doc("seconds that one repetition may take")] = 120.0
    needs: Annotated[
        Texts,
        Doc("without it nothing is measured, and older results stay", example='["many"]'),
    ] = ()  # of this profile alone: consent to what others might notice
    by_name: Annotated[
        bool,
        Doc("measured only if ONLY names it (what no claim rests on; `make bench` has to end)"),
    ] = False


@dataclass(frozen=True)
class Derived:
    """A number computed from metrics: a ratio of two, a difference, an inverse, or a
    scaled one.
    """

    key: Annotated[Key, Doc("by which book and deck name it: ID.KEY")]
    ratio: Annotated[
        Operands,
        Doc(
            'a is "variant.metric" or "variant.metric@x", where x may be "first" or "last"',
            example="[a, b]",
        ),
    ] = ()
    difference: Annotated[Operands, Doc("or a - b", example="[a, b]")] = ()
    inverse: Annotated[str, Doc("or 1/a", example="a")] = ""
    value: Annotated[str, Doc("or a itself", example="a")] = ""
    at: Annotated[Value | None, Doc("x of all operands that name none", example="16")] = None
    scale: Annotated[float, Doc("what it is multiplied by")] = 1.0
    unit: Annotated[str, Doc("after scaling")] = ""

    @property
    def operation(self) -> str:
        """Which of OPERATIONS."""
        return next(name for name in OPERATIONS if getattr(self, name))

    @property
    def operands(self) -> tuple[str, ...]:
        """One or two, as "variant.metric" or "variant.metric@x"."""
        given: str | tuple[str, ...] = getattr(self, self.operation)
        return (given,) if isinstance(given, str) else given

    def fault(self) -> str:
        return one_of(self, *OPERATIONS)


@dataclass(frozen=True)
class ThenRow:
    """What a source reports of one thing, in its own unit; `low` and `high` where it gives several.

    `name` is what stands beside it here. Where nothing can, `why` says why.
    """

    value: Annotated[float, Rule(least=0), Doc("as the source has it", example="6.11")]
    title: Annotated[str, Doc("needed where there is no variant")] = ""
    low: Annotated[float | None, Rule(least=0), Doc("where the source gives several values; with high")] = None
    high: Annotated[float | None, Rule(least=0), Doc("of several values")] = None
    name: Annotated[
        str,
        Rule(pattern="(.*[^@])?", must='be a text that does not end with "@"'),
        Doc("what of ours stands beside it", key="variant", example='"writev" or "pool@64"'),
    ] = ""
    why: Annotated[str, Doc("what cannot be had keeps its figure, and says why")] = ""
    note: Annotated[str, Doc("below the table")] = ""

    @property
    def variant(self) -> str:
        return self.name.partition("@")[0]

    @property
    def x(self) -> str:
        return self.name.partition("@")[2]

    def operand(self, metric: str) -> str:
        """`variant.metric@x`, as [[number]]s name it."""
        return f"{self.variant}.{metric}" + (f"@{self.x}" if self.x else "")

    def fault(self) -> str:
        for one, other in (("low", "high"), ("high", "low")):
            if getattr(self, one) is not None and getattr(self, other) is None:
                return f'"{one}" goes with "{other}"'
        if bool(self.name) != bool(self.why) and (self.name or self.title):
            return ""
        return 'either "variant" is needed, or "title" and "why" nothing here stands beside it'


@dataclass(frozen=True)
class Then:
    """A table of a source, to be printed beside ours. `scale` turns its unit into the metric's."""

    key: Annotated[Id, Doc("by which the book names it: ID.KEY")]
    title: Annotated[str, Doc("of the table")]
    source: Annotated[str, Rule(choices=tuple(SOURCES)), Doc("where it stands")]
    metric: Annotated[str, Doc("what of ours stands beside it", example='"bytes_per_s"')]
    base: Annotated[
        str,
        Doc(
            "the row that all ratios are relative to: then/then in the source, here/here in one run",
            example='"writev"',
        ),
    ]
    rows: Annotated[tuple[ThenRow, ...], Rule(filled=True), Doc("one for each figure")]
    unit: Annotated[str, Doc("of the values of the rows", example='"MB/s"')] = ""
    scale: Annotated[
        float,
        Rule(above=0),
        Doc("turns them into the metric's unit; only where that is another one", example="1e6"),
    ] = 0.0
    notes: Annotated[Texts, Doc("what is wrong with them, or what they do not say")] = ()

    @property
    def base_row(self) -> ThenRow:
        """The row that the ratios are relative to."""
        return next(row for row in self.rows if row.variant and row.name == self.base)


@dataclass(frozen=True)
class Helper:
    """A program that runs beside the server: a disk, a herd of idle clients, a stat helper."""

    name: Annotated[str, Doc("of its scalars: NAME.KEY")]
    command: Annotated[
        Words,
        Doc(
            "ready when it has printed a line; must end with 0 or by the signal that asks it to. "
            "The numbers of a "
            "JSON object in its last line are scalars, NAME.KEY"
        ),
    ]
    after_server: Annotated[bool, Doc("it is started when the server listens")] = False
    phases: Annotated[Texts, Doc("it runs during these only; else during all", example='["during"]')] = ()


@dataclass(frozen=True)
class Phase:
    """One of several loads on the same server. Its scalars carry its name: `during.failed`."""

    name: Annotated[
        str,
        Doc(
            "scalars are then called before.requests_per_s, ..., and those of memory too, at its "
            "end: "
            "before.server_pss_kib",
            example='"before"',
        ),
    ]
    args: Annotated[Texts, Doc("are added to the tool's")] = ()
    may_fail: Annotated[bool, Doc("that no client was served (hammer's status 1) is a result")] = False


@dataclass(frozen=True)
class LoadTool:
    """Arguments of a load generator."""

    args: Annotated[
        Texts,
        Doc(
            "{urls} is a file with the URL of every file of the docroot",
            example='["-c", "{connections}", "{url}/small.html"]',
        ),
    ] = ()
    warmup: Annotated[
        Texts,
        Doc(
            "is run first and not reported. (A server with a queue still works off what it has "
            "left: where that "
            "counts, hammer's -w.)"
        ),
    ] = ()


@dataclass(frozen=True)
class Docroot:
    """The files to serve."""

    files: Annotated[
        Mapping[FileName, Annotated[int, Rule(least=0)]],
        Doc(
            "names, with {000..999} for a thousand of them, and sizes in bytes",
            example='{ "small.html" = 1000, "pool/{000..999}.bin" = 102400 }',
        ),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class Disk:
    """A museum disk to be mounted: its pools of files, NAME=COUNTxSIZE, and its options."""

    pools: Annotated[
        Words,
        Doc(
            'the museum disk (`disk/README.md`) is `disk/` in the docroot, for "load" and '
            '"micro"; {docroot}; '
            "{files} is a file with the path of every file",
            example='["files=100000x102400"]',
        ),
    ]
    args: Annotated[Texts, Doc("its options", example='["--cache", "{mib}"]')] = ()


@dataclass(frozen=True)
class Stage:
    """An old machine for the server (root only). The limits are those of a control group (version 1
    or 2) that the server, page cache included, is alone in. The files lie on a loop device with an
    ext4 of their own, mounted anew for each repetition: inodes are in memory, contents are not.
    """

    memory_mib: Annotated[
        str,
        Doc('a number or "{placeholder}"; without it no limit', accepts=Amount, convert=str),
    ] = ""
    read_iops: Annotated[str, Doc("the same, reads a second", accepts=Amount, convert=str)] = ""
    mount: Annotated[
        str,
        Rule(pattern="[a-z0-9_=,{}]*", must="be options of mount(8)"),
        Doc("options; without any it is mounted for reading only", example='"noatime"'),
    ] = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """Probes of needs.py without which it cannot be set."""
        limits = {"memory-cgroup": self.memory_mib, "io-throttle": self.read_iops}
        return ("loop-device", *(name for name, wanted in limits.items() if wanted))


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A question, and the measurement that answers it."""

    id: Annotated[Id, Doc("the name of the file", example='"fork"')]
    title: Annotated[str, Doc("of figures and tables")]
    question: Annotated[str, Doc("what it answers")]
    kind: Annotated[
        str,
        Rule(choices=KINDS),
        Doc("a program that prints samples; a server under load; a timeline"),
    ]
    source: Annotated[Texts, Doc("where the question comes from")] = ()
    chapters: Annotated[Texts, Doc("that tell of it")] = ()
    headline: Annotated[bool, Doc("`make` measures it")] = False
    needs: Annotated[
        Texts,
        Doc(
            "probes of quest/measure/needs.py, or programs; missing = skipped, with reason and "
            "remedy. processes: a thousand of them may run; many: what others on the "
            "machine would notice, as "
            "20 000 processes; only with MANY=1; million: a million idle connections, by memory, "
            "fs.file-max and the "
            "entries that epoll may have",
            example='["strace"]',
        ),
    ] = ()
    pin: Annotated[
        str,
        Rule(choices=("one", "apart", "shared", "none")),
        Doc(
            "processors. Default: micro one core, load two (apart), trace none. shared: server "
            "and load may both use all"
        ),
    ] = ""
    profiles: Annotated[
        Mapping[Annotated[str, Rule(choices=PROFILES)], Profile],
        Rule(needs=("smoke", "quick", "full")),
        Doc("how much is done", key="profile"),
    ]
    sweep: Annotated[Sweep, Doc("every combination is a point", example="{ connections = [1, 4, 16] }")] = field(
        default_factory=dict
    )
    caps: Annotated[
        Mapping[str, Resources],
        Doc(
            "the limits of what a value counts, in MiB for memory; connections: idle ones in any "
            "number of processes, by "
            "the kernel's memory for both ends",
            example='{ children = "processes", connections = ["processes", "descriptors"] }',
        ),
    ] = field(default_factory=dict)
    variants: Annotated[tuple[Variant, ...], Rule(filled=True), Doc("what is compared", key="variant")]
    axis: Annotated[Axis | None, Doc("what the numbers are plotted over", key="x")] = None
    metrics: Annotated[tuple[Metric, ...], Rule(filled=True), Doc("what is taken of a repetition", key="metric")] = ()
    derived: Annotated[tuple[Derived, ...], Doc("what is computed from metrics", key="number")] = ()
    docroot: Annotated[Docroot, Doc("what is served")] = field(default_factory=Docroot)
    disk: Annotated[Disk | None, Doc("a museum disk")] = None
    stage: Annotated[Stage | None, Doc("an old machine")] = None
    hammer: Annotated[LoadTool | None, Doc("its arguments")] = None
    wrk: Annotated[LoadTool | None, Doc("its arguments")] = None
    h2load: Annotated[LoadTool | None, Doc("its arguments")] = None
    helpers: Annotated[tuple[Helper, ...], Doc("programs that run beside the server", key="helper")] = ()
    phases: Annotated[tuple[Phase, ...], Doc("several loads on one server", key="phase")] = ()
    then_tables: Annotated[tuple[Then, ...], Doc("tables of the sources", key="then")] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "pin", self.pin or PINS[self.kind])

    @property
    def tools(self) -> Mapping[str, LoadTool]:
        """The load generators that the file has arguments for."""
        given = {"hammer": self.hammer, "wrk": self.wrk, "h2load": self.h2load}
        return {name: tool for name, tool in given.items() if tool is not None}

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
        """The metric of that name. StopIteration if there is none."""
        return next(metric for metric in self.metrics if metric.name == name)

    def headline_profile(self, wanted: str) -> str:
        """`make` measures a headline experiment shortly: [profile.headline] in place of quick."""
        return "headline" if wanted == "quick" and "headline" in self.profiles else wanted


def x_text(x: Value | None) -> str:
    """As in keys and tables: 100, 0.5, close."""
    if x is None:
        return "-"
    return x if isinstance(x, str) else f"{x:.10g}"
