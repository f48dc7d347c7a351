"""Small faults for C and Python: which there can be in a text. Comments and strings are left alone.

A fault is one line changed. Its name (file, kind, the line as it was, how many equal lines stand
before it) is the same in two revisions as long as the line is, so that two runs can be compared.
"""

import hashlib
import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

C_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
C_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'')
PYTHON_TEXT = re.compile(r'"""(?:.|\n)*?"""|#[^\n]*|[rf]?"(?:\\.|[^"\\\n])*"')

# kind -> what is looked for in a line, and what takes its place.
EXCHANGES = {
    "comparison": [
        (f" {pair[place]} ", f" {pair[1 - place]} ")
        for pair in (("<", "<="), (">", ">="), ("==", "!="))
        for place in (0, 1)
    ],
    "logic": [(r" && ", " || "), (r" \|\| ", " && "), (r" and ", " or "), (r" or ", " and ")],
    "errno": [(r" (?:&&|\|\|) errno [!=]= E\w+", ""), (r"errno [!=]= E\w+ (?:&&|\|\|) ", "")],
    "off by one": [(r" \+ 1\b(?!\.)", ""), (r" - 1\b(?!\.)", ""), (r" >= 1\b", " >= 2")],
    "flag": [(r" \| [A-Z][A-Z0-9_]{3,}", ""), (r"\b[A-Z][A-Z0-9_]{3,} \| (?=[A-Z])", "")],
    "negated": [
        (r"\bif \((.*)\)( \{)?$", r"if (!(\1))\2"),
        (r"\bif not ", "if "),
        (r"\bwhile \(!", "while ("),
    ],
    "answer": [
        (r"return true;", "return false;"),
        (r"return false;", "return true;"),
        (r"return -1;", "return 0;"),
        (r"return True$", "return False"),
        (r"return False$", "return True"),
    ],
}
# Statements of one line that are left out.
ASSIGNED = r"[\w>.\[\]\*-]+ (?:=|\+=|-=|\|=) [^;]*"
COUNTED = r"[\w>.\[\]-]+(?:\+\+|--)"
CALLED = r"(?!return|break|continue|goto|else)\w+\([^;{]*\)"
LEFT_OUT = {
    "not given back": r"^\s+(?:close|free|munmap|io_close|closedir)\(.*\);$",
    "left out": rf"^\s+(?:{ASSIGNED}|{COUNTED}|{CALLED});$",
}
DECLARED = re.compile(
    r"^\s+(?:static |const |struct |enum |unsigned |long |int |char |bool |s?size_t |off_t |\w+_t )"
)


@dataclass(frozen=True)
class Fault:
    path: str
    kind: str
    number: int  #: of the line, from 1
    before: str
    after: str
    occurrence: int  #: how many lines like it, changed like it, stand above

    @property
    def name(self) -> str:
        text = "\0".join(
            [self.path, self.kind, self.before.strip(), self.after.strip(), str(self.occurrence)]
        )
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    def applied(self, text: str) -> str:
        lines = text.split("\n")
        assert lines[self.number - 1] == self.before
        lines[self.number - 1] = self.after
        return "\n".join(lines)


def masked(path: str, text: str) -> str:
    """The text, of the same length, with blanks where no fault shall be."""
    for pattern in [PYTHON_TEXT] if path.endswith(".py") else [C_COMMENT, C_STRING]:
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def of_line(line: str, code: str) -> Iterator[tuple[str, str]]:
    """(kind, the line with the fault) for a line and its masked self."""
    passed_over = ("#", "import ", "from ", "assert", "@")
    if code.lstrip().startswith(passed_over) or not code.startswith(" "):
        return
    for kind, exchanges in EXCHANGES.items():
        for pattern, new in exchanges:
            for place in re.finditer(pattern, code):
                if match := re.compile(pattern).match(line, place.start()):
                    yield kind, line[: match.start()] + match.expand(new) + line[match.end() :]
    for kind, pattern in LEFT_OUT.items():
        if re.match(pattern, code.rstrip()) and not DECLARED.match(code):
            yield kind, line[: len(line) - len(line.lstrip())] + "(void)0;"
            return


def faults(path: str, text: str) -> list[Fault]:
    """All faults of one line that we know to make in this text."""
    seen: Counter[tuple[str, str, str]] = Counter()
    found = []
    codes = masked(path, text).split("\n")
    for number, (line, code) in enumerate(zip(text.split("\n"), codes, strict=True), 1):
        for kind, after in of_line(line, code):
            key = (kind, line, after)
            found.append(Fault(path, kind, number, line, after, seen[key]))
            seen[key] += 1
    return found


def chosen(candidates: dict[str, list[Fault]], count: int, seed: int) -> list[Fault]:
    """So many, from all files in turn and in each from all kinds in turn, by the seed. When more
    are asked for they follow in the same order."""
    chance = random.Random(seed)
    ranked: list[tuple[float, Fault]] = []
    for _, all_faults in sorted(candidates.items()):
        by_kind: dict[str, list[Fault]] = {}
        for fault in sorted(all_faults, key=lambda fault: fault.name):
            by_kind.setdefault(fault.kind, []).append(fault)
        rows = list(by_kind.values())
        chance.shuffle(rows)
        for row in rows:
            chance.shuffle(row)
        turns = itertools.zip_longest(*rows)
        queue = [fault for turn in turns for fault in turn if fault is not None]
        # A file with many lines has more to say: it comes up more often, by the square root.
        ranked += [(index / len(queue) ** 0.5, fault) for index, fault in enumerate(queue)]
    # Files of equal rank by lot: a run that is stopped has seen some of everything.
    lots = {path: chance.random() for path in sorted(candidates)}
    ranked.sort(key=lambda each: (each[0], lots[each[1].path]))
    return [fault for _, fault in ranked[:count]]
