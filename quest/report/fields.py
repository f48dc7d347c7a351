"""Prints the keys of our files into benchmarks/README.md, from the dataclasses that read them, and the rules of claims.

    python3 -m quest.report.fields            writes them (`make readme` does)
    python3 -m quest.report.fields --check    status 1 if the README has other ones (`make lint` does)

They stand there between two comments that Markdown does not show: <!--fields NAME--> and
<!--/fields-->.
"""

import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from quest.ground.errors import InputError
from quest.ground.toml import Key, keys_of
from quest.measure.peers import Peer
from quest.measure.records import LINES
from quest.measure.scene import Scene
from quest.report.claims import Claim, Ledger
from quest.report.judge import Registration
from quest.report.rules import RULES, parameters
from quest.report.since import ClaimSince
from quest.spec.model import Experiment

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Form = type[DataclassInstance]

README = Path("benchmarks/README.md")
BLOCK = re.compile(r"(<!--fields (?P<name>[a-z]+)-->\n).*?(?=<!--/fields-->)", re.S)
INDENT = "    "  # a code block of Markdown
LEFT = 29  # columns for the keys
LEFT_OF_RULES = 40
WIDTH = 140


def described(form: "Form") -> list[str]:
    """The keys of a file of that form, each table under its heading."""
    return [line for one in _tables(form, "") for line in _table(*one)]


def lines_of_results() -> list[str]:
    """The same of each type of line of a result file."""
    return [line for name, form in LINES.items() for line in _table(f'"{name}"', form)]


def _tables(form: "Form", heading: str) -> Iterator[tuple[str, "Form"]]:
    """A table, and all that it holds. Those of one form that follow each other are one."""
    yield heading, form
    inner: dict[Form, list[str]] = {}
    for key in keys_of(form):
        if key.table is not None:
            inner.setdefault(key.table, []).append(_heading(key))
    for table, headings in inner.items():
        yield from _tables(table, " ".join(headings))


def _heading(key: Key) -> str:
    if key.is_list:
        return f"[[{key.name}]]"
    return f"[{key.name}.NAME]" if key.is_table_of_tables else f"[{key.name}]"


def _table(heading: str, form: "Form") -> list[str]:
    """The heading with what the docstring says first, and a row for each key."""
    summary = " ".join((form.__doc__ or "").partition("\n\n")[0].split())
    first = _row(heading, summary) if heading else []
    return [*first, *(line for key in keys_of(form) if not key.table for line in _key(key)), ""]


def _key(key: Key) -> list[str]:
    choices = '"' + "|".join(key.choices) + '"' if key.choices else ""
    value = key.doc.example or choices
    kind = key.what.removeprefix("a ").replace("finite ", "")
    left = f"{key.name} = {value}" if value else f"{key.name}: {kind}"
    default = f"{key.default:g}" if isinstance(key.default, float) else key.default
    shown = type(default) in (str, int) and default not in ("", "0", 0)
    end = "; needed" if key.required else f"; default {default}" if shown else ""
    return _row(left, f"{key.doc.text}{end}")


def _row(left: str, text: str, columns: int = LEFT) -> list[str]:
    """The text beside what is on the left; below it, if that is too long."""
    texts = textwrap.wrap(text, WIDTH - columns - len(INDENT), break_long_words=False)
    first = f"{left:{columns}}{texts[0]}" if len(left) < columns else left
    rest = texts[1:] if len(left) < columns else texts
    return [first, *(" " * columns + line for line in rest)]


def rules_of_claims() -> list[str]:
    """Each rule that a claim may name, with its operands and numbers, and the first paragraph of its docstring."""
    rows = []
    for name, rule in RULES.items():
        operands, needed, defaults = parameters(name)
        numbers = [*needed, *(f"{key} = {value:g}" for key, value in defaults.items())]
        text = " ".join((rule.__doc__ or "").partition("\n\n")[0].split()).replace("`", "")
        rows += _row(f"{name}({', '.join([*operands, *numbers])})", text.rstrip("."), LEFT_OF_RULES)
    return rows


def beside_a_claim() -> list[str]:
    """The keys that a row of the ledger since 2003 has beside those of a claim."""
    of_claim = {key.name for key in keys_of(Claim)}
    return [line for key in keys_of(ClaimSince) if key.name not in of_claim for line in _key(key)]


def with_fields(text: str) -> str:
    """The README with the fields as they are now. InputError for a name that it does not know."""
    known = {
        "experiment": described(Experiment),
        "peer": described(Peer),
        "scene": described(Scene),
        "claims": described(Ledger),
        "since": beside_a_claim(),
        "results": lines_of_results(),
        "rules": rules_of_claims(),
        "registered": described(Registration),
    }

    return with_blocks(text, known, README)


def with_blocks(text: str, blocks: Mapping[str, list[str]], readme: Path) -> str:
    """A README with these lines between the comments of these names. InputError if it has others,
    or not each of them."""
    left = dict(blocks)

    def block(match: re.Match[str]) -> str:
        lines = left.pop(match["name"], None)
        if lines is None:
            raise InputError(f"{readme}: unknown or doubled: <!--fields {match['name']}-->")
        body = "\n".join(f"{INDENT}{line}".rstrip() for line in lines).strip("\n")
        return f"{match[1]}\n{body}\n\n"

    new = BLOCK.sub(block, text)
    if left:
        raise InputError(f"{readme}: missing: <!--fields {next(iter(left))}-->")
    return new


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: python3 -m quest.report.fields [--check]", file=sys.stderr)
        return 2
    old = README.read_text(encoding="utf-8")
    try:
        new = with_fields(old)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments and new != old:
        print(f"{README}: other keys or rules than the code has: make readme")
        return 1
    if not arguments:
        README.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
