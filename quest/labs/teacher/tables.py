"""The table of a class (labs/grader/many.py) as JSON, and as JUnit XML: a suite for each student, a
case for each test. What the machine could not judge is an error there, and no failure.
"""

import csv
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from quest.ground import foreign
from quest.labs import files
from quest.labs.many import BY_HAND, FIELDS, GRADED, NOTHING, SELF_CHECK

Row = dict[str, str]
Tests = Mapping[str, str]  #: id -> what its failure means


def write(slug: str, tests: Tests, table: Path, into: str | None, junit: str | None) -> int:
    with table.open(newline="", encoding="utf-8") as file:
        raw = list(csv.DictReader(file, restkey="more", restval=""))
    shown = ((row[key] for key in FIELDS) for row in raw)
    rows = [dict(zip(FIELDS, map(foreign.from_cell, row), strict=True)) for row in shown]
    rows.sort(key=lambda row: row["name"])
    if into:
        files.write(Path(into), foreign.to_json(rows, indent=1) + "\n")
    if junit:
        plain = [{key: foreign.plain(text) for key, text in row.items()} for row in rows]
        files.write(Path(junit), _junit(slug, tests, plain))
    return 0


def _junit(slug: str, tests: Tests, rows: list[Row]) -> str:
    top = ElementTree.Element("testsuites", name=slug)
    for row in rows:
        judged = row["state"] in (GRADED, BY_HAND, SELF_CHECK)
        failed = row["failed"].split()
        suite = ElementTree.SubElement(top, "testsuite", name=row["name"], time=row["seconds"])
        for test, means in tests.items():
            if row["state"] == NOTHING:
                _case(suite, test, "failure", NOTHING)
            elif row["score"] and test not in failed:
                _case(suite, test)
            elif judged:
                _case(suite, test, "failure", means)
            else:
                _case(suite, test, "error", "" if row["score"] else row["failed"])
        suite.set("tests", str(len(tests)))
        for kind in ("failure", "error"):
            suite.set(f"{kind}s", str(len(suite.findall(f"testcase/{kind}"))))
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ElementTree.Element, name: str, kind: str = "", why: str = "") -> None:
    case = ElementTree.SubElement(suite, "testcase", classname=suite.get("name", ""), name=name)
    if kind:
        ElementTree.SubElement(case, kind, message=why or "could not be judged on this machine")
