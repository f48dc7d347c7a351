"""The experiments of the tree, read once for all tests of a process: that takes a fifth of a second."""

from pathlib import Path

from quest.measure import chosen
from quest.spec import experiment_file

ROOT = Path(__file__).resolve().parents[1]
OF_THE_TALK = {one.id: one for one in experiment_file.load_all(ROOT / experiment_file.FOLDER)}
#: and those that are newer than the talk
EXPERIMENTS = OF_THE_TALK | {one.id: one for one in experiment_file.load_all(ROOT / chosen.SINCE)}
