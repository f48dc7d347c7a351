"""The variant of one class: which mistakes are planted, what functions and variables are called.

Contents, sizes and the order of tests come from the seed as it is, by SEED= of the grader.
"""

import random
import re
from dataclasses import replace

from quest.labs import work
from quest.labs.lab import TREE, Lab

STATIC = re.compile(r"^static\b[^;={(]*?\b([a-z_]\w*)\s*[(=;\[]", re.M)
PREFIXES = ("do", "my", "our", "web", "the", "srv", "one", "this")
WORD = r'"(?:\\.|[^"\\\n])*"|\b[A-Za-z_]\w*\b'  # a string is passed over
IN_PROSE = re.compile(r"`[^`\n]+`|^ {4}.*$|\b\w+_\w+\b|\b\w+(?=\()", re.M)


class Variant:
    """Of no class, and so as the lab is, if the seed is 0."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.random = random.Random(seed)
        self.lab = lab
        self.seed = seed
        self.mistakes = lab.mistakes
        self.names: dict[str, str] = {}
        most = len(lab.mistakes)
        if seed and most > 2:  # at least half of them, and not all, in their order
            chosen = self.random.sample(range(most), self.random.randint((most + 1) // 2, most - 1))
            self.mistakes = tuple(lab.mistakes[number] for number in sorted(chosen))

    def starters(self) -> dict[str, str]:
        """File -> what a student of this class begins with. To be asked for once."""
        return self.renamed(work.starters(replace(self.lab, mistakes=self.mistakes)))

    def renamed(self, texts: dict[str, str]) -> dict[str, str]:
        """Each name that is one file's own, and nobody else's, gets this class's prefix."""
        if not self.seed:
            return texts
        prefix = self.random.choice(PREFIXES)
        headers = " ".join(path.read_text("utf-8") for path in TREE.glob("code/**/*.h"))
        taken = set(re.findall(r"\w+", headers))
        whole = "\n".join(texts.values())
        taken |= set(re.findall(r"(?:\.|->)(\w+)", whole))  # of structs
        own = [set(STATIC.findall(text)) for text in texts.values()]
        for name in sorted(set().union(*own) - taken):
            self.names[name] = f"{prefix}_{name}"
        return {name: self._in(text) for name, text in texts.items()}

    def _in(self, text: str) -> str:
        return re.sub(WORD, lambda word: self.names.get(word[0], word[0]), text)

    def told(self, text: str) -> str:
        """The same in the task: where it is code, and no word of English."""
        return IN_PROSE.sub(lambda piece: self._in(piece[0]), text)
