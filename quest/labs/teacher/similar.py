"""`make similar`: how much two submissions have in common, told by sim_c of similarity-tester. It
compares tokens: other names, comments and spaces do not help.

What everybody was given is left out before: the lab's starter, and the class's. Ours is among
them, for solutions are public.
"""

import re
import shutil
import subprocess
from pathlib import Path

from quest.labs import intake, place, work
from quest.labs.errors import LabError, say
from quest.labs.lab import Lab
from quest.labs.teacher.variant import Variant

LEAST = 50  # per cent; what is below says nothing
RUN = 12  # tokens that have to agree, in a row
OURS = "(ours)"
SAID = re.compile(r"^(\d+)\.c consists for (\d+) % of (\d+)\.c material", re.M)


def _own(texts: list[str], given: set[str]) -> str:
    """The lines that are not the starter's."""
    lines = "\n".join(texts).splitlines()
    return "".join(line + "\n" for line in lines if line.strip() not in given)


def _texts(lab: Lab, one: intake.Submission) -> list[str]:
    with place.temporary() as top:
        try:
            handed = intake.staged(one, lab.files, lab.slug, top)
        except (OSError, LabError):
            return []  # make grade-all says why
        paths = [handed.folder / name for name in lab.files]
        return [path.read_text("utf-8", "replace") for path in paths if path.exists()]


def show(lab: Lab, folder: Path, seed: int) -> int:
    """With `seed` of the class that was given this variant."""
    if shutil.which("sim_c") is None:
        raise LabError("skipped: sim_c is not installed (apt-get install similarity-tester)")
    starters = [*work.starters(lab).values(), *Variant(lab, seed).starters().values()]
    given = {line.strip() for text in starters for line in text.splitlines()}
    written = {one.name: _texts(lab, one) for one in intake.students(folder)[0]}
    written[OURS] = [lab.source(name).read_text(encoding="utf-8") for name in lab.files]
    names = [name for name, texts in written.items() if texts]
    with place.temporary() as top:
        for number, name in enumerate(names):
            (top / f"{number}.c").write_text(_own(written[name], given), encoding="utf-8")
        command = ["sim_c", "-p", "-e", "-a", "-s", "-T", f"-r{RUN}", f"-t{LEAST}"]
        done = subprocess.run(
            [*command, *(f"{number}.c" for number in range(len(names)))],
            cwd=top, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if done.returncode:
        raise LabError(f"sim_c: {done.stderr.strip() or done.returncode}")
    pairs: dict[tuple[int, int], int] = {}
    for one, share, other in SAID.findall(done.stdout):
        low, high = sorted((int(one), int(other)))
        pairs[low, high] = max(int(share), pairs.get((low, high), 0))
    for (one, other), share in sorted(pairs.items(), key=lambda pair: -pair[1]):
        say(f"  {share:>3} %  {names[one]}  {names[other]}")
    said = f"{len(names) - 1} submissions, {len(pairs)} pairs with {LEAST} % or more"
    say(f"\n{said} of what they added in common.")
    say("Few ways lead through a small gap: read both before you say anything.")
    return 0
