"""The one table of goals: what each is for, which settings it takes, and what runs it.

From it come `make help`, the refusal of a setting or a value that there is not, what was meant by it, and the table of
goals in README.md. A goal without `runs` is a rule of the makefiles alone; of the others a rule may build first.

A new goal is an entry here, and a function that takes the settings and gives the status. It is read at the start of
each make with a setting: it imports nothing that takes time.
"""

from typing import NamedTuple


class Setting(NamedTuple):
    """NAME=VALUE. Its kind says what the value may be: settings.py has a check for each.

    text      anything: what runs the goal looks at it
    flag      1, or yes
    number    whole, from 0 on
    port      0 to 65535; 0: any that is free
    server    of the series, or 00-client; 9, 09 and epoll will do
    program   a server, or constant
    chapter   of the book
    lab       of labs/
    track     of slides/tracks.toml
    scene     of benchmarks/scenes
    words     one of `among`; if that is yes alone, 1 is the same
    """

    name: str
    help: str
    kind: str = "text"
    example: str = ""  #: as `make help` shows it; else the default, or `among`
    default: str = ""
    among: tuple[str, ...] = ()
    needed: bool = False
    shown: bool = True  #: in the goal's line of help


class Goal(NamedTuple):
    name: str
    help: str
    group: str  #: of `make help ALL=1`; "" for what only makefiles call
    settings: tuple[Setting, ...] = ()
    runs: str = ""  #: "module:function" of what takes the settings and gives the status
    first: bool = False  #: one of the ten that a newcomer is shown
    says: str = "make {}: "  #: how a line that says what is wrong begins
    goes_on: bool = False  #: when it was stopped, the same command goes on


GROUPS = ("read", "run", "measure", "learn", "teach", "speak", "maintain")


def _program(help_: str, needed: bool = True, name: str = "CH", example: str = "02-fork") -> Setting:
    return Setting(name, help_, "program", example, needed=needed)


def _lab(needed: bool = True) -> Setting:
    return Setting("CH", "the lab: 02, fork or 02-fork", "lab", "02-fork", needed=needed)


PORT = Setting("PORT", "the first port that is tried", "port")
AT_8000 = PORT._replace(default="8000")
ONLY = Setting("ONLY", "experiments: their ids, or how these begin", example="id,id")
TRACK = Setting("TRACK", "the slides of one track", "track", "talk45")
ABOUT_TALK = (
    Setting("SPEAKER", "who speaks: on the first slide", example="name"),
    Setting("EVENT", "where: on the first slide", example="name"),
    Setting("DATE", "when: on the first slide", example="date"),
    Setting("URL", "an address, on the last slide", example="https://..."),
)
DEMO = Setting("N", "which demo; all without", example="3")
DIR = Setting("DIR", "what was handed in", example="folder")
OF_CLASS = DIR._replace(help="a folder with a folder for each, or what a forge exports", example="submissions")
SANDBOX = Setting("SANDBOX", "points where there is no sandbox, too", example="no", shown=False)
JUDGING = (
    Setting("ONLY", "tests of the lab, by name", example="id,id"),
    Setting("PATIENCE", "all time-outs are so many times as long", example="3", shown=False),
    Setting("PROCESSES", "so many processes at once", example="100", shown=False),
    Setting("SEED", "the same files and order again", example="7", shown=False),
)
CLASS = Setting("CLASS", "rosters, deadlines, what late days cost (labs/README.md)", example="class.toml")
GRADEBOOK = Setting("GRADEBOOK", "the table of this work that Canvas, Moodle, Gradescope or GitHub Classroom exports",
                    example="export.csv")  # fmt: skip
GRADES = Setting("CSV", "the table that make grade-all has written", example="grades.csv", needed=True)
NAMED = Setting("NAMES", "anonymous ids in place of names", "words", "no", among=("yes", "no"))
SECONDS = Setting("SECONDS", "how long", "number", default="300")

GOALS = (
    Goal("all", "install what is missing (asks first), build, measure the headline set, draw, write book and deck", "",
         (Setting("PROFILE", "how long is measured", "words", default="quick", among=("smoke", "quick", "full")),),
         first=True),
    # ---- read
    Goal("next", "where you are, and what to do now", "read", (), "quest.learn.path:show_next", first=True),
    Goal("path", "the whole way: what is done of each chapter, and what is not", "read", (),
         "quest.learn.path:show_path"),
    Goal("done", "tick the step that `make next` names as done, or skip it", "read",
         (Setting("CH", "another chapter", "chapter", "09"), Setting("STEP", "which step of it", example="read"),
          Setting("UNDO", "take the tick back", "flag")),
         "quest.learn.path:tick", first=True),
    Goal("read", "the book in the browser, with what you have done of each chapter", "read", (AT_8000,),
         "quest.learn.read:serve_book", first=True),
    Goal("book", "the book's pages: build/book/index.html", "read"),
    Goal("epub", "the book in one file, to send and to carry: build/book/book.html, book.epub", "read"),
    Goal("chapters", "the chapters, one line each", "read", (), "quest.learn.path:show_chapters"),
    # ---- run
    Goal("run", "run one server, with a page that helps on", "run",
         (_program("the server: 09, epoll or 09-epoll")._replace(kind="server"), PORT._replace(default="8080"),
          Setting("ADDR", "the address it listens at; 0.0.0.0: others reach it, too", default="127.0.0.1"),
          Setting("ARGS", "its own options and folder", example='"-v -p 8081 DOCROOT"')),
         "quest.learn.run:run", first=True),
    Goal("diff", "what changes from one server to the next", "run",
         (_program("the one before", name="FROM", example="01"), _program("the one after", name="TO", example="02")),
         first=True),
    Goal("amalgamate", "one self-contained C file of a server", "run", (_program("the server"),)),
    Goal("which", "on which model a server stands that runs on this machine, and on which chapter: nginx, node, yours",
         "run", (Setting("PID", "its process, as pgrep -a nginx shows it", "number", "4711", needed=True),),
         "quest.learn.which.goal:which"),
    Goal("servers", "build all servers and tools (glibc, dynamic): build/bin", "run"),
    # ---- measure
    Goal("bench", "measure, and say what came of it", "measure",
         (ONLY, Setting("PROFILE", "how long", "words", default="quick", among=("smoke", "quick", "full")),
          Setting("CH", "nothing is told of chapters after this one; goes with ONLY=", "chapter", "01"),
          Setting("AGAIN", "what is measured already, too", "flag"),
          Setting("CLIENT", "the load comes from there, by ssh", example="user@host"),
          Setting("SERVER", "this machine's address, as CLIENT reaches it", example="address", shown=False),
          Setting("MANY", "yes to so many processes that others notice", "flag", shown=False)),
         "quest.command.measuring:bench", says="", first=True, goes_on=True),
    Goal("claims", "the claim ledger: what was said then, what is seen here", "measure",
         (Setting("ONLY", "claims and experiments", example="3,fork-latency"),
          Setting("SINCE", "the claims since 2003 in place of the talk's", "words", "yes", among=("yes",))),
         "quest.command.measuring:claims", says=""),
    Goal("compare", "two result folders, old against new; a folder, or one of the words reference and here", "measure",
         (Setting("A", "the old one", example="folder", needed=True),
          Setting("B", "the new one", example="folder", needed=True), ONLY),
         "quest.command.measuring:compare", says=""),
    Goal("share", "your results in one file, without paths and names, to hand on: build/share", "measure", (),
         "quest.command.measuring:share", says=""),
    Goal("tables", "the tables of 2003 to 2007 with today's values beside them", "measure", (ONLY,),
         "quest.command.measuring:tables", says=""),
    Goal("figures", "draw all figures: build/figures", "measure"),
    Goal("trace", "record a server call by call, with its lines, while a few clients visit it: build/recordings",
         "measure",
         (Setting("CH", "the server", "server", "02-fork"),
          Setting("SCENE", "what the clients do", "scene", default="slow"),
          Setting("LAB", "your server of a lab beside ours, and where they first differ", "lab", "02-fork")),
         "quest.command.recordings:trace"),
    Goal("doctor", "what does not run on this machine, why, and the remedy", "measure", (),
         "quest.report.doctor:doctor", first=True),
    Goal("peers", "install the servers that ours are compared with (asks first); none is left running", "measure"),
    # ---- learn
    Goal("lab", "a lab's starter in work/02-fork; without CH: which labs there are", "learn", (_lab(needed=False),),
         "quest.command.labs:lab", first=True, says="lab: "),
    Goal("labs", "the labs there are", "learn", (), "quest.command.labs:labs", says="lab: "),
    Goal("check", "your lab, tested and marked; without CH: all servers in every build variant, ten minutes", "learn",
         (_lab(needed=False), Setting("STAGE", "one stage of it alone: now, or its number", example="now"), *JUDGING,
          Setting("WATCH", "again after each change of it", "flag")),
         "quest.command.labs:check", says="lab: "),
    Goal("hint", "the next hint of a lab, or the third", "learn",
         (_lab(), Setting("N", "which hint", example="3")), "quest.command.labs:hint", says="lab: "),
    Goal("solution", "what separates your server from ours", "learn",
         (_lab(), Setting("SURE", "before you have all points, too", "flag", shown=False)),
         "quest.command.labs:solution",
         says="lab: "),
    Goal("reset", "begin a lab anew; what you wrote is kept beside it", "learn", (_lab(),), "quest.command.labs:reset",
         says="lab: "),
    Goal("my", "your own server, in 29 stages: what fails now, and what comes next", "learn",
         (Setting("STAGE", "another stage than the one in hand", example="inline"),
          Setting("HINT", "a hint of the stage, 1 to 3", "number", "1"),
          Setting("ALL", "every stage that has passed, once more", "words", "yes", among=("yes",)),
          Setting("WATCH", "again after each file that is saved", "words", "yes", among=("yes",)),
          Setting("SKIP", "a stage that is left out", example="nocopy", shown=False)),
         "quest.my.commands:my", first=True, says="my: "),
    Goal("race", "your own server beside ours and nginx: requests, memory, waiting; 90 s: build/race", "learn",
         (Setting("AGAINST", "servers of ours, the first is what ratios are to, and of benchmarks/peers",
          example="09,15,nginx"),
          Setting("NAME", "whose server it is, for a board", example="ada"),
          Setting("PROFILE", "how long", "words", default="quick", among=("smoke", "quick", "full")),
          Setting("AGAIN", "measured anew, though it is the same server", "flag")),
         "quest.my.race:race", says="race: ", goes_on=True),
    # ---- teach
    Goal("grade", "points for what was handed in", "teach",
         (_lab(), DIR, Setting("JSON", "the points, for a program", example="results.json"), *JUDGING, SANDBOX),
         "quest.command.labs:grade", says="lab: "),
    Goal("class", "whose each submission of a class is, by the roster; what is unknown or double is listed", "teach",
         (OF_CLASS, CLASS, GRADEBOOK, Setting("CSV", "the table; DIR.students.csv without", example="students.csv")),
         "quest.command.labs:of_class", says="lab: "),
    Goal("grade-all", "a class: a folder for each in DIR, a line for each in CSV", "teach",
         (_lab(), OF_CLASS, Setting("CSV", "the table; DIR.csv without", example="grades.csv"),
          CLASS, GRADEBOOK, Setting("STUDENT", "this one again, and no other", example="jane"),
          Setting("JSON", "the same, for a program", example="file"), *JUDGING, SANDBOX),
         "quest.command.labs:grade_all", says="lab: ", goes_on=True),
    Goal("reports", "a report for each student of a class, to be sent back", "teach",
         (_lab(), GRADES, CLASS, NAMED), "quest.command.labs:reports", says="lab: "),
    Goal("gradebook", "a class's grades in the table that a forge exports, for its import; without GRADEBOOK: a list",
         "teach", (_lab(), GRADES, GRADEBOOK, CLASS, NAMED), "quest.command.labs:gradebook", says="lab: "),
    Goal("autograder", "a lab for Gradescope, without its solution", "teach", (_lab(), SANDBOX),
         "quest.command.labs:autograder", says="lab: "),
    Goal("handout", "a lab to hand out, without its solution", "teach",
         (_lab(), Setting("HINTS", "with its hints", "words", default="yes", among=("yes", "no"))),
         "quest.command.labs:handout", says="lab: "),
    Goal("questions", "the question bank: for students, or with answers for a teacher", "teach",
         (Setting("CH", "of one chapter", "chapter", "09"),
          Setting("ANSWERS", "with answers, and the mistake that each finds", "words", "yes", among=("yes",))),
         "quest.book.questions:show"),
    Goal("merge", "what the machines of a class have measured, a figure an experiment", "teach",
         (Setting("RUNS", "of each machine build/results, or make share's file", example='"folder run.zip ..."',
          needed=True),),
         "quest.command.labs:merge", says="lab: "),
    Goal("board", "the races of a class, by ratios, from a folder of their files: build/board", "teach",
         (DIR._replace(help="the files that make race has written", example="races", needed=True),
          Setting("NAMES", "names on the board: a file of name, tab, name; or numbers", example="names.tsv")),
         "quest.my.board:board", says="board: "),
    # ---- speak
    Goal("slides", "the slides: build/slides/deck.html", "speak", (TRACK, *ABOUT_TALK)),
    Goal("present", "show the deck and play its demos, served by 15-slashdot", "speak", (TRACK, AT_8000),
         "quest.stage.cli:present_deck"),
    Goal("rehearse", "every demo once, limits, tools: what will work on stage", "speak", (),
         "quest.stage.cli:rehearse_all"),
    Goal("demo", "a demo of the talk in the terminal", "speak", (DEMO,), "quest.stage.cli:demo"),
    Goal("demo-record", "record the demos, for the day on which they do not run", "speak", (DEMO,),
         "quest.stage.cli:demo_record"),
    Goal("schedule", "minutes of every section and track of the deck; of a track its slides, and when each begins",
         "speak", (TRACK,)),
    Goal("pdf", "on paper: build/pdf/book.pdf, handout.pdf (two pages), deck.pdf, deck-notes.pdf", "speak",
         (TRACK, Setting("WHAT", "without the book", "words", "deck", among=("deck",)), *ABOUT_TALK)),
    Goal("release", "book, EPUB, decks and PDFs of the reference run, in one archive: build/release/quest-VERSION.zip",
         "speak"),
    # ---- maintain
    Goal("deps", "install what is missing, after a yes (DEPS=yes: without asking; DEPS=skip: never)", "maintain"),
    Goal("test", "the tests; of one server, or of one part, in a minute", "maintain",
         (_program("the tests of one server", needed=False, example="09"),
          Setting("ONLY", "a package of quest/, or a folder of tests/", "part", "stats"),
          Setting("ALL", "all, as CI does: on every server, in the simulated world, and what is slow", "words", "yes",
                  among=("yes",)))),
    Goal("variants", "build them in every variant that is measured", "maintain"),
    Goal("watch", "make read, for who writes: the book is made and shown anew when a chapter, figure or server changes",
         "maintain", (AT_8000,), "quest.learn.read:watch"),
    Goal("lint", "style, types, limits, text, data: everything that can be checked without running a server",
         "maintain"),
    Goal("readme", "bring up to date what README files print: goals, numbers and figure; keys and rules", "maintain"),
    Goal("budgets", "lines and files of each folder, beside what the folder may have", "maintain", (),
         "quest.command.budgets:print_budgets"),
    Goal("help", "ten goals to begin with; ALL=1: all of them, in groups; GOAL=bench: one, with its settings",
         "maintain",
         (Setting("ALL", "every goal", "flag", shown=False), Setting("GOAL", "one goal", "goal", "bench", shown=False)),
         "quest.command.help:print_help"),
    Goal("clean", "remove what was generated; results and work/ stay", "maintain"),
    Goal("distclean", "remove all of build/, the results too", "maintain"),
    Goal("reference", "one session of the reference, 90 minutes, by the registered judge: build/reference", "maintain",
         (ONLY, Setting("SESSION", "its name; the one that was begun in the last three hours, or a new one, without",
          example="2026-11-26-2140"),
          Setting("VERDICTS", "only what a rule asks, an hour", "words", "yes", among=("yes",)),
          Setting("SINCE", "the claims since 2003 in place of the talk's", "words", "yes", among=("yes",))),
         "quest.command.measuring:reference", says="", goes_on=True),
    Goal("register", "freeze the judge, and write benchmarks/registered.toml, before there are data", "maintain",
         (Setting("SINCE", "that of the claims since 2003: benchmarks/registered-since.toml", "words", "yes",
                  among=("yes",)),),
         "quest.command.registering:register"),
    Goal("frozen", "do the frozen judges still say what they said? of the committed results", "maintain",
         (Setting("WRITE", "their words on data that are new to them are kept", "words", "yes", among=("yes",)),),
         "quest.command.registering:kept"),
    Goal("retest", "do two sessions say the same? and the registered judge what the judge of now says?", "maintain",
         (Setting("A", "a session: reference, PROCESSOR/NAME or a folder; all pairs without", example="reference"),
          Setting("B", "the other", example="intel-xeon/2026-11-27-0915")),
         "quest.command.registering:retest", says=""),
    Goal("recordings", "all recordings anew, or some: benchmarks/recordings", "maintain",
         (Setting("CH", "of one server", "server", "02-fork"), Setting("SCENE", "of one scene", "scene", "slow")),
         "quest.command.recordings:keep"),
    Goal("move-recordings", "follow lines of the recordings that have only moved", "maintain", (),
         "quest.command.recordings:move"),
    Goal("export", "numbers for figures, book and deck: build/data", "maintain", (), "quest.command.measuring:export",
         says=""),
    Goal("contents", "write anew what the reader's path knows of the chapters (chapters/contents.json)", "maintain"),
    Goal("lint-book",
         "chapters and slides: template, style, minutes and notes, the map of the talk, regions not shown, citations",
         "maintain"),
    Goal("spelling", "chapters, slides, labs and each README in British English, with the words of chapters/words.txt",
         "maintain"),
    Goal("style", "habits of style that chapters and notes may have less of, counted; CH=: the sentences", "maintain",
         (Setting("CH", "the sentences of a chapter and of its slides", "chapter", "09"),
          Setting("WRITE", "chapters/style.tsv: what has become less, or as it is now", "words",
          among=("sink", "anew"))),
         "quest.book.style_table:show"),
    Goal("cross", "the portable programs, compiled for FreeBSD, NetBSD, OpenBSD and macOS (not run there): build/cross",
         "maintain", (Setting("CROSS", "of one make of its own", shown=False),)),
    Goal("test-labs", "every lab with its solution, its starter, each mistake, each chapter's program: half an hour",
         "maintain"),
    Goal("test-book", "the browser test of every page and slide that is built", "maintain"),
    Goal("libkqueue", "10-kqueue on libkqueue, where that is installed: the servers' contract, then the test of kqueue",
         "maintain"),
    Goal("server-tables", "server x inherited state, and server x call x errno: a quarter of an hour", "maintain"),
    Goal("soak", "thousands of connections opened and closed for minutes", "maintain",
         (SECONDS, _program("one server", needed=False, example="09-epoll"))),
    Goal("attacks", "who is served while a slow crowd fills a server: the table in chapters/overload.md", "maintain"),
    Goal("soak-mixed", "all kinds of load at once, with restarts", "maintain",
         (SECONDS, _program("one server", needed=False, example="15-slashdot"))),
    Goal("soak-restarts", "restarts under odd clients, every process followed by strace", "maintain",
         (SECONDS._replace(default="60"),)),
    Goal("soak-sim", "servers in a simulated world, one after the other", "maintain",
         (SECONDS._replace(help="how long, in all", default="60"), Setting("SEED", "the same world again", "number",
         "1"),
          _program("one server", needed=False, example="09-epoll"))),
    Goal("sim-faults", "does the simulated world find faults? some are planted", "maintain",
         (Setting("ONLY", "some of them", example="slow-never-leave"),)),
    Goal("vm", "10-kqueue and its tests in a virtual machine (DEPS=yes fetches FreeBSD's image)", "maintain",
         (Setting("OS", "which system", default="freebsd", example="netbsd"),
          Setting("IMAGE", "the disk of another system", example="disk"), Setting("KEY", "what opens it",
          example="file"),
          Setting("VM_ARGS", "for tests/bsd/vm.sh", shown=False))),
    Goal("fuzz", "the request parser against libFuzzer", "maintain",
         (Setting("FUZZ_SECONDS", "how long", "number", default="30"),)),
    Goal("mutants", "how strong are the tests?", "maintain",
         (Setting("N", "so many faults", "number", "170"), Setting("SEED", "which", "number", "1"),
          Setting("ONLY", "faults in these files", example="code/http"),
          Setting("RESULTS_OF", "where they are kept", example="file.jsonl"),
          Setting("BEFORE", "compared with these", example="file.jsonl"))),
    # ---- what makefiles call
    Goal("headline", "what `make` measures", "",
         (Setting("PROFILE", "how long", "words", default="quick", among=("smoke", "quick", "full")), ONLY),
         "quest.command.measuring:headline", says="", goes_on=True),
    Goal("verdict", "one screen of verdicts, as `make` ends", "", (), "quest.command.measuring:verdict", says=""),
    Goal("programs", "what these experiments want built", "", (ONLY,), "quest.command.measuring:programs", says=""),
    Goal("racers", "programs that a race wants built", "", (Setting("AGAINST", "servers", example="09,15"),),
         "quest.my.race:racers", says="race: "),
    Goal("measured", "what was measured was for this chapter", "", (Setting("CH", "the chapter", "chapter"),),
         "quest.learn.path:note_measurement"),
    Goal("tests-of", "the files of tests about a part", "", (Setting("ONLY", "the part", "part", needed=True),),
         "quest.command.parts:tests_of"),
    Goal("check-data", "experiments, results, claims and keys in order?", "", (),
         "quest.command.measuring:check_data", says=""),
    Goal("check-recordings", "does each recorded line still say what it said?", "", (),
         "quest.command.recordings:check", says=""),
    Goal("check-lines", "are budgets and README.md's table of goals kept?", "", (), "quest.command.budgets:check"),
    Goal("write-goals", "the table of goals in README.md", "", (), "quest.command.help:write_readme"),
    Goal("everything", "all, once the tools are there", "", (Setting("PROFILE", "how long"),)),
    Goal("tests-of-all", "test, once all is built", "",
         (Setting("ALL", "all, as CI does", "words", "yes", among=("yes",)),)),
    Goal("tests-of-variants", "check, once all is built", ""),
)  # fmt: skip

BY_NAME = {goal.name: goal for goal in GOALS}
#: Made by make from a list: a goal for each variant, for each system. One that is not in it make does not know.
MADE = ("lint-", "cross-")
#: Of every goal: how it is built and shown, and where things are.
EVERYWHERE = {
    "V": "1: show the commands",
    "DEPS": "ask, yes or skip: whether what is missing is installed",
    "RESULTS": "reference: the committed run's numbers, and not yours",
    "BUILD": "where things are built",
    "WORK": "where your labs are",
    **dict.fromkeys(
        ("Q", "LINT", "LOGS", "JOBS", "TEST_JOBS", "PYTEST_ARGS", "PYTHON", "CC", "CFLAGS", "CPPFLAGS",
         "LDFLAGS", "WERROR", "CHROMIUM", "PANDOC", "GNUPLOT", "DOT", "SYSTEM", "PROCESSOR", "SHELL", "PATH",
         "SOURCE_DATE_EPOCH"), ""),
}  # fmt: skip
#: Settings that may come from the environment: documented as such (benchmarks/README.md).
FROM_ENVIRONMENT = ("CLIENT", "SERVER", "MANY", "DEPS", "RESULTS", "WORK")
