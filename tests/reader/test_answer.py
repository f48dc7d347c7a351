"""What `make predict` tells after a guess."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reader.answer import Chapter

TEXT = """::: predict
How long?
:::

![A picture.](some.svg){#fig:some}

::: {.when claim=9 verdict="holds"}
It took [a.b.us]{.num} in @fig:some, and [not much]{.when claim=9 verdict="changed"} (@sec:other).
:::
::: {.when claim=9 verdict="otherwise"}
The ledger says [9]{.verdict}.
:::

More.

Never told.

## A section
"""


@pytest.mark.parametrize(
    ("verdict", "first"),
    [("holds", "It took 3 µs in the figure, and."), ("reversed", "The ledger says reversed.")],
)
def test_the_answer_has_its_numbers_and_its_verdict(
    tmp_path: Path, verdict: str, first: str
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/numbers.json").write_text('{"a.b.us": {"text": "3 µs"}}', "utf-8")
    (tmp_path / "data/claims.json").write_text(json.dumps([{"id": 9, "verdict": verdict}]), "utf-8")
    chapter = Chapter(TEXT, tmp_path)
    assert chapter.answer(TEXT.index(":::\n\n") + 4) == [first, "More."]


def test_without_data_a_number_is_a_question_mark(tmp_path: Path) -> None:
    chapter = Chapter("[a]{.num} is much.\n\n# Next", tmp_path)
    assert chapter.answer(0) == ["? is much."]
