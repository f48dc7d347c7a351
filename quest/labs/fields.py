"""`python3 -m quest.labs.fields` prints the keys of lab.toml, measure.toml and CLASS into labs/README.md,
from the dataclasses that read them. (A test compares the two.)
"""

from quest.labs.class_rules import Rules
from quest.labs.lab import TREE, Lab
from quest.labs.measured import MeasuredLab
from quest.report.fields import described, with_blocks

README = TREE / "labs/README.md"


def with_fields(text: str) -> str:
    """The README with the keys as they are now."""
    blocks = {"lab": described(Lab), "measure": described(MeasuredLab), "class": described(Rules)}
    return with_blocks(text, blocks, README)


if __name__ == "__main__":
    README.write_text(with_fields(README.read_text(encoding="utf-8")), encoding="utf-8")
