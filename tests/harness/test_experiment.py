"""Experiment files: what is read, that every mistake ends in one exact line, and the plan."""

import copy
import datetime
import json
import math
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from quest.ground.errors import InputError
from quest.spec import experiment_file, plan
from quest.spec.model import Experiment, Value, x_text
from quest.spec.plan import Step
from tests.harness.made_up import BENCHMARKS, EXPERIMENT, Tree, definition, parsed

LOADED = {
    "kind": "load", "hammer": {"args": ["{url}"]}, "variant": [{"name": "a", "server": "x"}],
}  # fmt: skip


def smoke(**settings: Any) -> dict[str, Any]:
    return {"profile": {**definition()["profile"], "smoke": settings}}


def variant(**changes: Any) -> dict[str, Any]:
    return {"variant": [{"name": "a", "command": ["x"], **changes}]}


def number(**settings: Any) -> dict[str, Any]:
    return {"number": [{"key": "gain", **settings}]}


#: A placeholder that nothing fills, wherever there may be one.
NONE = ["{childen}"]
UNFILLED: list[dict[str, Any]] = [
    {**LOADED, "variant": [{"name": "a", "server": "x", "args": NONE}]},
    {**LOADED, "variant": [{"name": "a", "server": "x", "load_args": NONE}]},
    {**LOADED, "variant": [{"name": "a", "server": "x", "holds": NONE[0]}]},
    {**LOADED, "hammer": {"args": NONE}},
    {**LOADED, "hammer": {"warmup": NONE}},
    {**LOADED, "helper": [{"name": "h", "command": NONE}]},
    {**LOADED, "phase": [{"name": "p", "args": NONE}]},
    {**LOADED, "docroot": {"files": {"x": 1}}, "stage": {"read_iops": NONE[0]}},
    {"disk": {"pools": ["a=1x1"], "args": NONE}},
    {"disk": {"pools": ["a=1x1"]}, **variant(disk_args=NONE)},
]

#: A change, and what the line must name beside the file: the place, the key, and what is wrong.
BROKEN: list[tuple[dict[str, Any], list[str]]] = [
    ({"id": None}, ['"id" is missing']),
    ({"id": "other"}, ['"id"', '"other"', "sample.toml"]),
    ({"kind": "macro"}, ['"kind"', "micro, load, trace", '"macro"']),
    ({"source": ["a", 1]}, ['"source"', "texts"]),
    ({"variant": []}, ['"variant"', "empty"]),
    ({"variant": [{"title": "x"}]}, ['variant 1: "name" is missing']),
    ({"variant": [{"name": "a b", "command": ["x"]}]}, ['variant "a b": "name"']),
    ({"variant": [{"name": "diet", "comand": ["x"], "command": ["x"]}]},
     ['variant "diet": unknown key "comand"', '"command"?']),
    ({"variant": [{"name": "a"}]}, ['variant "a": "command" is missing']),
    (variant(title="the 'a'"), ['variant "a": "title"', "quotes"]),
    (variant(holds="3"), ['variant "a": "holds" goes with "server"']),
    (variant(aa={}), ['variant "a": "aa"', "empty"]),
    (variant(disk_args=["--keep"]), ['variant "a": "disk_args"', "[disk]"]),
    ({"variant": [{"name": "a", "command": ["x"]}] * 2}, ['variant "a"', "twice"]),
    ({"metric": [{"name": "us", "column": "ns"}] * 2}, ['metric "us"', "twice"]),
    ({"number": [{"key": "gain", "value": "a.us"}] * 2}, ['number "gain"', "twice"]),
    ({"phase": [{"name": "p"}] * 2}, ['phase "p"', "twice"]),
    (variant(command=["x", "{childen}"]), ['variant "a"', "{childen}", 'profile "smoke"']),
    (variant(command=["x", "{n*2}"], set={"n": "two"}),
     ['variant "a"', "{n*2}", '"n"', "whole number", 'profile "smoke"']),
    ({"profile": {"smoke": {"rounds": 1}, "quick": {"rounds": 1}}},
     ['"profile": "full" is missing']),
    ({"profile": {**definition()["profile"], "fast": {"rounds": 1}}},
     ['"profile": unknown key "fast"']),
    (smoke(rounds=0), ['profile "smoke": "rounds"', "at least 1", "0"]),
    (smoke(rounds=True), ['profile "smoke": "rounds"', "whole number"]),
    (smoke(rounds=1, set={"n": [1]}), ['profile "smoke": "set": "n"', "number or a text"]),
    ({"sweep": {"n": [1, 1]}}, ['"sweep": "n"', "once"]),
    ({"x": {"title": "x"}}, ['"x"', '"column"', '"parameter"']),
    ({"x": {"title": "x", "column": "n", "bin_width": 0}}, ['"x": "bin_width"', "above 0"]),
    ({"x": {"title": "x", "parameter": "n", "bin_width": 3}}, ['"x": "bin_width"', '"column"']),
    ({"x": {"title": "x", "parameter": "size"}}, ['"x"', '"size"']),
    ({"metric": None}, ['"metric" is missing']),
    ({"metric": [{"name": "us", "column": "ns", "scalar": "x"}]},
     ['metric "us"', '"column"', '"scalar"']),
    (number(ratio=["a.us"]), ['number "gain": "ratio"', "two"]),
    (number(ratio=["a.us", "c.us"]), ['number "gain"', 'unknown variant "c"', '"c.us"']),
    (number(ratio=["a.us", "b.ms"]), ['number "gain"', 'unknown metric "ms"', '"b.ms"']),
    (number(ratio=["a.us", "b+aa.us"]), ['number "gain"', 'variant "b"', "aa", '"b+aa"']),
    (number(inverse="us"), ['number "gain"', '"us"', "variant.metric"]),
    ({"number": [{"key": "gain"}]}, ['number "gain"', "ratio", "difference", "inverse", "value"]),
    (number(ratio=["a.us", "b.us"], value="a.us"), ['number "gain"', "one of ratio"]),
    ({"caps": {"size": "processes"}}, ['"caps"', '"size"']),
    ({"caps": {"n": "process"}}, ['"caps": "n"', "processes, descriptors"]),
    ({"then": [{"key": "small", "title": "x", "source": "talk", "metric": "us", "unit": "µs",
                "base": "a", "rows": [{"variant": "a", "value": 1}]}] * 2},
     ['then "small"', "twice"]),
    ({"then": [{"key": "small", "title": "x", "source": "talk", "metric": "us", "unit": "µs",
                "base": "a", "rows": [{"variant": "a", "value": 1, "low": 1}]}]},
     ['then "small": row 1: "low"', '"high"']),
    ({"then": [{"key": "small", "title": "x", "source": "talk", "metric": "us", "unit": "µs",
                "base": "a", "rows": [{"variant": "a", "why": "none", "value": 1}]}]},
     ['then "small": row 1', '"variant"', '"why"']),
    ({"docroot": {"files": {"../x": 1}}}, ['"docroot": "files": "../x"', "below the docroot"]),
    ({"docroot": {"files": {"/x": 1}}}, ['"docroot": "files": "/x"', "below the docroot"]),
    ({"helper": [{"name": "disk", "command": ["x"], "phases": ["later"]}]},
     ['helper "disk"', 'phase "later"']),
    ({"kind": "load", "variant": [{"name": "a"}]}, ['variant "a"', '"server"', '"peer"']),
    ({"kind": "load", "variant": [{"name": "a", "server": "01-iterative"}]},
     ['variant "a"', "[hammer]"]),
    ({**LOADED, "variant": [{"name": "a", "server": "x", "command": ["x"]}]},
     ['variant "a": "command"', '"micro"']),
    ({"kind": "trace"}, ['variant "a": "command"', '"micro"']),
    ({"kind": "trace", "variant": [{"name": "a"}]}, ['variant "a": "server" is missing']),
    ({"kind": "trace", "variant": [{"name": "a", "server": "x"}], "disk": {"pools": ["a=1x1"]}},
     ['"disk"', '"micro"', '"load"']),
    ({"stage": {"read_iops": 240}}, ['"stage"', '"load"', "[docroot.files]"]),
    ({**LOADED, "docroot": {"files": {"x": 1}}, "stage": {"read_iops": 0}},
     ['"stage": "read_iops"', "above 0, or a placeholder"]),
    ({**LOADED, "docroot": {"files": {"x": 1}}, "stage": {"read_iops": "{N}"}},
     ['"stage": "read_iops"', "a whole number above 0, or a placeholder"]),
    ({"disk": {"pools": ["a=1x1"]}, "docroot": {"files": {"x": 1}}}, ['"docroot"', "disk"]),
    ({"disk": {"pools": ["a={size}x1"]}}, ['variant "a"', "{size}", 'profile "smoke"']),
    ({**LOADED, "variant": [{"name": "a", "server": "x", "peer": "y"}]}, ['variant "a"', '"server"', '"peer"']),
    ({"docroot": {"files": {"a/../../x": 1}}}, ['"docroot": "files": "a/../../x"', "below the docroot"]),
    ({"docroot": {"files": {"a/..": 1}}}, ['"docroot": "files": "a/.."', "below the docroot"]),
    *((changes, ['variant "a"', "{childen}", 'profile "smoke"']) for changes in UNFILLED),
    *(({**variant(command=["x", "{m*2}"]), "sweep": {"m": some}},
       ['variant "a"', "{m*2}", '"m"', "whole number"]) for some in ([0, 1], [1, 2.5], [1, "two"])),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "named"), BROKEN, ids=[str(named) for _, named in BROKEN])
def test_a_mistake_is_one_line_with_file_place_and_fault(changes: dict[str, Any], named: list[str]) -> None:
    shown = "benchmarks/experiments/sample.toml"
    with pytest.raises(InputError) as error:
        experiment_file.parse(definition(**changes), shown, "sample")
    line = str(error.value)
    assert line.startswith(f"{shown}: ") and "\n" not in line
    assert [name for name in named if name not in line] == [], line


NOT_EMPTY = (
    "variant.server", "variant.peer", "metric.column", "metric.scalar", "x.column", "x.parameter",
)  # fmt: skip
FREE = ("set", "sweep", "caps", "files", "rename", "aa")  # tables whose keys nobody prescribes
CHOICES = (
    "kind", "pin", "variant.build", "variant.load", "metric.reduce", "metric.better", "then.source",
)  # fmt: skip
EXPERIMENTS = {
    path.stem + name: data
    for path in sorted(BENCHMARKS.glob("experiments/*.toml"))
    for name, data in experiment_file.spread(tomllib.loads(path.read_text("utf-8")), str(path))
}
Place = tuple[str | int, ...]


def places(table: Mapping[str, Any], above: Place = ()) -> Iterator[Place]:
    for key, value in table.items():
        yield (*above, key)
        inner = enumerate(value) if isinstance(value, list) else ()
        for number, each in inner:
            if isinstance(each, dict):
                yield from places(each, (*above, key, number))
        if isinstance(value, dict) and key not in FREE:
            yield from places(value, (*above, key))


def changed(stem: str, place: Place, **changes: Any) -> str:
    """The line that tells what is wrong then; "" for what is an experiment still."""
    data: Any = copy.deepcopy(EXPERIMENTS[stem])
    table = data
    for step in place[:-1]:
        table = table[step]
    table |= changes
    for key in [key for key, value in changes.items() if value is None]:
        del table[key]
    try:
        found = experiment_file.parse(data, "x.toml", stem)
    except InputError as error:
        return str(error)
    for profile in found.profiles.values():
        plan.plan_hash(found, profile, {}, ())
        plan.steps(found, profile, 1, (variant.name for variant in found.variants), {})
    return ""


# Each key that some experiment has: one that has it, and where.
KEYS = {
    ".".join(step for step in place if isinstance(step, str)): (stem, place)
    for stem, data in EXPERIMENTS.items()
    for place in places(data)
}


@pytest.mark.parametrize("key", KEYS)
def test_whatever_is_written_at_a_key_there_is_no_traceback(key: str) -> None:
    stem, place = KEYS[key]
    name = str(place[-1])
    for value in (None, True, 2.0, -1, "", "x", [], [1], ["x"], {}, {"x": [1]}, math.nan):
        line = changed(stem, place, **{name: value})
        assert line.startswith("x.toml: ") or not line
    assert changed(stem, place, **{name: datetime.date(2026, 11, 23)})
    assert 'unknown key "comand"' in changed(stem, place, comand=1)
    if key in NOT_EMPTY:
        assert changed(stem, place, **{name: ""})
    if key in CHOICES:
        assert "must be one of" in changed(stem, place, **{name: "other"})


def test_a_file_may_hold_an_experiment_for_each_of_several(tree: Tree) -> None:
    several = '[[each]]\nname = "one"\n[[each]]\nname = "two"\ntitle = "The other, {each}"\n'
    tree.experiment(text=EXPERIMENT.format(id="sample-{each}", rounds=3, extra="") + several)
    path = tree.experiments / "sample.toml"
    one, two = experiment_file.load(path)
    assert (one.id, two.id, two.title) == ("sample-one", "sample-two", "The other, two")
    assert one.title != two.title
    assert one.variants == two.variants
    text = path.read_text(encoding="utf-8")
    for wrong in ("three'\ntitle = 2026-11-23", "a\"b'"):
        path.write_text(f"{text}[[each]]\nname = '{wrong}\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"""sample\.toml: "each": '(three|a"b)': """):
            experiment_file.load_all(tree.experiments)


@pytest.mark.parametrize("each", ["5", '["x"]', "[{ title = 'no name' }]", "[{ name = 1 }]"])
def test_a_mistake_in_each_is_one_line(tmp_path: Path, each: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(f'id = "x-{{each}}"\neach = {each}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r'x\.toml: "each" must be tables with a "name"$'):
        experiment_file.load(path)


def test_the_command_line_says_the_same(tree: Tree) -> None:
    tree.experiment(text='id = "sample"\nkind = "micro"\n')
    done = tree.bench()
    assert done.returncode == 2
    assert done.stderr.startswith('benchmarks/experiments/sample.toml: "title" is missing')
    assert done.stderr.count("\n") == 1
    tree.experiment("good")
    [good] = experiment_file.load_all(tree.experiments, only=["good"])  # the other is not looked at
    assert good.id == "good"
    with pytest.raises(InputError, match="no such folder; run from the root of the tree"):
        experiment_file.load_all(tree.root / "nowhere")


def test_defaults() -> None:
    found = parsed()
    assert found.pin == "one"
    assert found.variant("a+aa").name == "a"
    assert found.variant("b").title == "b"
    assert found.metric("us").reduce == "median"
    assert found.profiles["quick"].values == {"n": 3}
    load = parsed(kind="load", hammer={"args": ["-c", "1"]}, variant=[{"name": "a", "server": "01-iterative"}])
    assert load.pin == "apart"


def test_a_headline_run_is_short_only_in_place_of_quick() -> None:
    profiles = {**definition()["profile"], "headline": {"rounds": 1, "set": {"n": 1}}}
    found = parsed(headline=True, profile=profiles)
    chosen = [found.headline_profile(name) for name in ("smoke", "quick", "full")]
    assert chosen == ["smoke", "headline", "full"]
    assert parsed().headline_profile("quick") == "quick"


def test_of_the_headline_only_its_own_are_loaded(tree: Tree) -> None:
    for name in ("one", "two"):
        tree.experiment(name)
    tree.edit(('id = "two"', 'id = "two"\nheadline = true'), name="two")
    assert [one.id for one in experiment_file.load_all(tree.experiments, headline=True)] == ["two"]
    assert len(experiment_file.load_all(tree.experiments)) == 2


# ---- the plan: what is run, in which order, and when results no longer fit it --------------------

NAMES = ("a", "b")


def steps(found: Experiment, seed: int = 1, profile: str = "quick", **caps: int) -> list[Step]:
    return plan.steps(found, found.profiles[profile], seed, NAMES, caps)


def digest(programs: str = "1", skipped: tuple[str, ...] = (), **changes: Any) -> str:
    found = parsed(**changes)
    return plan.plan_hash(found, found.profiles["quick"], {"bin/fake": programs}, skipped)


def rounds(**counts: int) -> dict[str, Any]:
    """The profiles, each with its number of rounds."""
    whole = {"smoke": 2, "quick": 2, "full": 2, **counts}
    return {name: {"rounds": count, "set": {"n": 3}} for name, count in whole.items()}


def test_every_round_has_everything_once_the_aa_variant_twice_in_an_order_of_its_own() -> None:
    """The same seed gives the same order, another one another."""
    several = parsed(sweep={"size": [1, 2]}, profile=rounds(quick=20))
    found = steps(several)
    assert found == steps(several) != steps(several, seed=2)
    orders = set()
    for number in range(20):
        inside = found[6 * number : 6 * number + 6]
        assert {s.round for s in inside} == {number}
        assert Counter(s.variant for s in inside) == {"a": 2, "a+aa": 2, "b": 2}
        orders.add(tuple((s.variant, s.params["size"]) for s in inside))
    assert len(orders) > 1
    assert [s.order for s in found] == list(range(120))


def test_aa_can_be_limited_to_some_points() -> None:
    limited = {"name": "a", "command": ["x"], "aa": {"size": [4]}}
    found = parsed(sweep={"size": [1, 4]}, variant=[limited, {"name": "b", "command": ["x"]}])
    assert [s.params["size"] for s in steps(found) if s.variant == "a+aa"] == [4, 4]


def test_a_sweep_is_a_product_and_profile_and_variant_may_change_it() -> None:
    profiles = rounds()
    profiles["smoke"]["sweep"] = {"size": [1]}
    variants = [
        {"name": "a", "command": ["x"]},
        {"name": "b", "command": ["x"], "sweep": {"keep": ["no"]}, "set": {"n": 9}},
    ]
    sweep = {"size": [1, 2], "keep": ["no", "yes"]}
    found = parsed(sweep=sweep, profile=profiles, variant=variants)
    assert len([s for s in steps(found) if s.round == 0 and s.variant == "a"]) == 4
    smoke = [s.params for s in steps(found, profile="smoke") if s.round == 0]
    assert sorted((p["size"], p["keep"], p["n"]) for p in smoke) == [
        (1, "no", 3), (1, "no", 9), (1, "yes", 3),
    ]  # fmt: skip


def test_caps_make_equal_points_one() -> None:
    found = parsed(sweep={"size": [1, 100, 200]})
    sizes = sorted(s.params["size"] for s in steps(found, size=50) if s.variant == "b")
    assert sizes == [1, 1, 50, 50]


def test_what_a_variant_sweeps_counts_most_and_a_value_that_is_set_least() -> None:
    profiles = rounds()
    profiles["quick"]["sweep"] = {"size": [1]}
    variants = [{"name": "a", "command": ["x"]}, {"name": "b", "command": ["x"], "sweep": {"size": [2], "n": [5, 6]}}]
    found = steps(parsed(sweep={"size": [0]}, profile=profiles, variant=variants))
    points = {(s.variant, s.params["size"], s.params["n"]) for s in found}
    assert points == {("a", 1, 3), ("b", 2, 5), ("b", 2, 6)}


def test_a_pair_stays_one_where_its_point_is_capped() -> None:
    limited = {"name": "a", "command": ["x"], "aa": {"size": [100]}}
    found = steps(parsed(sweep={"size": [1, 100]}, variant=[limited]), size=50)
    assert sorted((s.variant, s.params["size"]) for s in found if s.round == 0) == [("a", 1), ("a", 50), ("a+aa", 50)]


def test_an_x_has_its_digits_in_keys() -> None:
    xs: list[Value | None] = [1048576, 0.1 + 0.2, 2.0, "close", None]
    assert [x_text(x) for x in xs] == ["1048576", "0.3", "2", "close", "-"]


def test_every_experiment_on_a_disk_asks_for_the_bystander() -> None:
    """A client that needs nothing of the disk, and how long it waits."""
    files = sorted(experiment_file.FOLDER.glob("*.toml"))
    tables = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in files}
    on_disks = {
        id: {metric["name"] for metric in table["metric"]}
        for id, table in tables.items()
        if table["kind"] == "load" and ("disk" in table or "stage" in table)
    }
    assert len(on_disks) > 10
    for id, named in on_disks.items():
        assert {"bystander_ms", "bystander_worst_ms"} <= named, id


AGAIN, OTHER = definition()["variant"]
DECIDING: list[dict[str, Any]] = [
    {"programs": "2"},
    {"skipped": ("b",)},
    {"sweep": {"size": [1]}},
    {"pin": "none"},
    {"variant": [{"name": "a", "command": ["y"]}]},
    {"profile": rounds(quick=3)},
    {"disk": {"pools": ["a=20x1"]}},
    {"disk": {"pools": ["a=30x1"]}},
    LOADED,
    {**LOADED, "hammer": {"args": ["-k", "{url}"]}},
    {**LOADED, "docroot": {"files": {"x": 1}}},
    {**LOADED, "docroot": {"files": {"x": 1}}, "stage": {"read_iops": 240}},
    {**LOADED, "docroot": {"files": {"x": 1}}, "stage": {"read_iops": 480}},
    {**LOADED, "helper": [{"name": "h", "command": ["x"]}]},
    {**LOADED, "phase": [{"name": "p"}]},
    {**LOADED, "variant": [{"name": "a", "server": "x", "args": ["-v"]}]},
    {"caps": {"n": "processes"}},
    {"variant": [{**AGAIN, "aa": False}, OTHER]},
    {"variant": [{**AGAIN, "aa": {"n": [3]}}, OTHER]},
]
WORDS: list[dict[str, Any]] = [
    {"title": "Another", "question": "Why?", "chapters": ["x"], "headline": True},
    {"x": {"title": "x", "column": "live"}},
    {"metric": [*definition()["metric"], {"name": "least", "column": "ns", "reduce": "min"}]},
    {"profile": rounds(full=50)},
    {"needs": ["strace"]},
    {"source": ["x"]},
    {"number": [{"key": "gain", "ratio": ["a.us", "b.us"]}]},
    {
        "then": [
            {
                "key": "small",
                "title": "x",
                "source": "talk",
                "metric": "us",
                "unit": "µs",
                "base": "a",
                "rows": [{"variant": "a", "value": 1}],
            }
        ]
    },
    {"profile": {**rounds(), "quick": {**rounds()["quick"], "seconds": 9, "timeout": 9, "by_name": True}}},
]


def test_the_committed_results_are_of_the_plans_that_the_experiments_have() -> None:
    """Else the harness itself would throw away what readers have measured. An experiment may have
    been edited since.
    """
    same = []
    for found in experiment_file.load_all():
        path = BENCHMARKS / "results/reference" / f"{found.id}.jsonl"
        if path.exists():
            with path.open(encoding="utf-8") as lines:
                run, second = (json.loads(next(lines)) for _ in range(2))
            if second["type"] != "skip":
                profile = found.profiles[run["profile"]]
                same += [plan.plan_hash(found, profile, run["programs"], ()) == run["plan"]]
    assert len(same) > 50 and sum(same) >= 0.9 * len(same)


def test_the_hash_tells_what_decides_about_the_numbers() -> None:
    """Words, metrics and other profiles may change without measuring again."""
    assert len({digest(), *(digest(**change) for change in DECIDING)}) == len(DECIDING) + 1
    assert {digest(**change) for change in WORDS} == {digest()}
