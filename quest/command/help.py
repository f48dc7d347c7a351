"""`make help`, and the table of goals in README.md."""

from pathlib import Path

from quest.command.goals import BY_NAME, EVERYWHERE, GOALS, GROUPS, Goal, Setting
from quest.command.settings import Given
from quest.ground.files import write_whole

README = Path("README.md")
BEGIN, END = "<!--goals-->\n", "<!--/goals-->\n"


def shown(setting: Setting) -> str:
    """As one types it, in brackets if it may be left away."""
    value = setting.example or setting.default or "|".join(setting.among) or ("1" if setting.kind == "flag" else "...")
    text = f"{setting.name}={value}"
    return text if setting.needed else f"[{text}]"


def line(goal: Goal) -> str:
    """What it is for, and the settings one needs first."""
    settings = " ".join(shown(setting) for setting in goal.settings if setting.shown)
    return f"{goal.help}  {settings}" if settings and goal.name != "all" else goal.help


def _typed(goal: Goal) -> str:
    return "" if goal.name == "all" else goal.name


def print_help(given: Given) -> int:
    """Ten goals; with ALL=1 every one, in groups; with GOAL= one, with all its settings."""
    if name := given.get("GOAL"):
        return _print_goal(BY_NAME[name])
    listed = [goal for goal in GOALS if goal.group]
    wide = max(len(goal.name) for goal in listed)
    if not given.get("ALL"):
        for goal in (goal for goal in GOALS if goal.first):
            print(f"  make {_typed(goal):{wide}}  {line(goal)}")
        print(
            "\nmake help ALL=1: every goal, in groups; make help GOAL=bench: all settings of one. Start with README.md."
        )
        return 0
    print(f"  make {'':{wide}}  {line(BY_NAME['all'])}")
    for group in GROUPS:
        print(group)
        for goal in (goal for goal in listed if goal.group == group):
            print(f"  make {goal.name:{wide}}  {line(goal)}")
        print()
    of_every_goal = ", ".join(f"{name} ({text})" for name, text in EVERYWHERE.items() if text)
    print(f"Of every goal: {of_every_goal}")
    return 0


def _print_goal(goal: Goal) -> int:
    print(f"make {_typed(goal)}: {goal.help}" if _typed(goal) else f"make: {goal.help}")
    texts = [shown(setting) for setting in goal.settings]
    wide = max(map(len, texts), default=0)
    for text, setting in zip(texts, goal.settings, strict=True):
        more = f" (one of {', '.join(setting.among)})" if len(setting.among) > 1 else ""
        more += f"; default: {setting.default}" if setting.default else ""
        print(f"  {text:{wide}}  {setting.help}{more}")
    if not texts:
        print("  it takes no settings")
    return 0


# ---- README.md -----------------------------------------------------------------------------------


def readme_table() -> str:
    """The goals that a newcomer needs first, in Markdown."""
    rows = ["| goal | what it does |", "|---|---|"]
    for goal in (goal for goal in GOALS if goal.first):
        settings = "".join(f" {shown(setting)}" for setting in goal.settings if setting.shown and _typed(goal))
        words = f"make {_typed(goal)}{settings}".strip().replace("|", "\\|")
        rows.append(f"| `{words}` | {goal.help} |")
    return "\n".join(rows) + "\n"


def with_table(text: str) -> str:
    """README's text, with the table as it has to be between its two marks. ValueError without them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{README}: {BEGIN.strip()} and {END.strip()} are to hold the table of goals")
    return f"{before}{BEGIN}{readme_table()}{END}{after}"


def write_readme(_: Given) -> int:
    """Writes the table of goals into README.md."""
    text = README.read_text(encoding="utf-8")
    if (new := with_table(text)) != text:
        write_whole(README, new)
    return 0


def readme_problems() -> list[str]:
    """A line if README.md has another table."""
    text = README.read_text(encoding="utf-8")
    try:
        kept = with_table(text) == text
    except ValueError as error:
        return [str(error)]
    return [] if kept else [f"{README}: its table of goals is another than quest/command/goals.py has: make readme"]
