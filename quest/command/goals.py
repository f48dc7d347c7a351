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
DEMO = Setting("N", "which demo; without it: all", example="3")
DIR = Setting("DIR", "what was handed in", example="folder")
OF_CLASS = DIR._replace(help="a folder for each student in it; or an export of Canvas, Moodle", example="submissions")
SANDBOX = Setting("SANDBOX", "no: give points even where there is no sandbox", example="no", shown=False)
JUDGING = (
    Setting("ONLY", "only these tests of the lab", example="id,id"),
    Setting("PATIENCE", "multiply all time-outs by this number", example="3", shown=False),
    Setting("PROCESSES", "at most so many processes at once", example="100", shown=False),
    Setting("SEED", "repeat a grading with the same files, in the same order", example="7", shown=False),
)
CLASS = Setting("CLASS", "rosters, deadlines, what late days cost (labs/README.md)", example="class.toml")
GRADEBOOK = Setting("GRADEBOOK", "the table of this work that Canvas, Moodle, Gradescope or GitHub Classroom exports",
                    example="export.csv")  # fmt: skip
GRADES = Setting("CSV", "the table that make grade-all has written", example="grades.csv", needed=True)
NAMED = Setting("NAMES", "no: anonymous ids in place of names", "words", "no", among=("yes", "no"))
SECONDS = Setting("SECONDS", "how long", "number", default="300")

GOALS = (
    Goal("all", "install what is missing (asks first), build, measure the headline set, draw, write book and deck", "",
         (Setting("PROFILE", "how long is measured", "words", default="quick", among=("smoke", "quick", "full")),),
         first=True),
    # ---- read
    Goal("next", "where you are, and what to do now", "read", (), "quest.learn.path:show_next", first=True),
    Goal("path", "every chapter, with the steps that you have done and those that are left", "read", (),
         "quest.learn.path:show_path"),
    Goal("done", "mark as done the step that `make next` shows, or skip it", "read",
         (Setting("CH", "another chapter", "chapter", "09"), Setting("STEP", "which step of it", example="read"),
          Setting("UNDO", "take the mark away again", "flag")),
         "quest.learn.path:tick", first=True),
    Goal("read", "the book in the browser, with what you have done of each chapter", "read", (AT_8000,),
         "quest.learn.read:serve_book", first=True),
    Goal("book", "the book's pages: build/book/index.html", "read"),
    Goal("epub", "the book in one file, to send and to carry: build/book/book.html, book.epub", "read"),
    Goal("chapters", "the chapters, one line each", "read", (), "quest.learn.path:show_chapters"),
    # ---- run
    Goal("run", "run one server, with pages that say what to try", "run",
         (_program("the server: 09, epoll or 09-epoll")._replace(kind="server"), PORT._replace(default="8080"),
          Setting("ADDR", "the address it listens at; with 0.0.0.0 other machines reach it, too", default="127.0.0.1"),
          Setting("ARGS", "options of the server itself, and the folder it serves", example='"-v -p 8081 DOCROOT"')),
         "quest.learn.run:run", first=True),
    Goal("diff", "what changes from one server to the next", "run",
         (_program("the one before", name="FROM", example="01"), _program("the one after", name="TO", example="02")),
         first=True),
    Goal("amalgamate", "one self-contained C file of a server", "run", (_program("the server"),)),
    Goal("which", "the model of a server that runs on this machine (nginx, node, yours), and the chapter about it",
         "run", (Setting("PID", "number of its process, as pgrep -a nginx shows it", "number", "4711", needed=True),),
         "quest.learn.which.goal:which"),
    Goal("servers", "build all servers and tools (glibc, dynamic): build/bin", "run"),
    # ---- measure
    Goal("bench", "measure, and show the results", "measure",
         (ONLY, Setting("PROFILE", "how long", "words", default="quick", among=("smoke", "quick", "full")),
          Setting("CH", "tell nothing of chapters after this one; only together with ONLY=", "chapter", "01"),
          Setting("AGAIN", "measure again what is measured already", "flag"),
          Setting("CLIENT", "the machine that makes the load, reached by ssh", example="user@host"),
          Setting("SERVER", "the address at which CLIENT reaches this machine", example="address", shown=False),
          Setting("MANY", "allow so many processes that other users of this machine notice them", "flag", shown=False)),
         "quest.command.measuring:bench", says="", first=True, goes_on=True),
    Goal("claims", "the claim ledger: each claim, what was said then, and what is seen here", "measure",
         (Setting("ONLY", "claims and experiments", example="3,fork-latency"),
          Setting("SINCE", "the claims since 2003 in place of the talk's", "words", "yes", among=("yes",))),
         "quest.command.measuring:claims", says=""),
    Goal("compare", "compare old and new results: each a folder, or one of the words reference and here", "measure",
         (Setting("A", "the old one", example="folder", needed=True),
          Setting("B", "the new one", example="folder", needed=True), ONLY),
         "quest.command.measuring:compare", says=""),
    Goal("share", "pack your results into one file for others, without paths and names: build/share", "measure", (),
         "quest.command.measuring:share", says=""),
    Goal("tables", "the tables of 2003 to 2007 with today's values beside them", "measure", (ONLY,),
         "quest.command.measuring:tables", says=""),
    Goal("figures", "draw all figures: build/figures", "measure"),
    Goal("trace", "record a server call by call, with its source lines, while a few clients use it: build/recordings",
         "measure",
         (Setting("CH", "the server", "server", "02-fork"),
          Setting("SCENE", "what the clients do", "scene", default="slow"),
          Setting("LAB", "record your server of this lab and ours, and say where they first differ", "lab", "02-fork")),
         "quest.command.recordings:trace"),
    Goal("doctor", "what does not run on this machine, why, and the remedy", "measure", (),
         "quest.report.doctor:doctor", first=True),
    Goal("peers", "install the servers that ours are compared with (asks first); none is left running", "measure"),
    # ---- learn
    Goal("lab", "copy the starter of a lab to work/02-fork; without CH: list the labs", "learn", (_lab(needed=False),),
         "quest.command.labs:lab", first=True, says="lab: "),
    Goal("labs", "list the labs", "learn", (), "quest.command.labs:labs", says="lab: "),
    Goal("check", "test your lab and count its points; without CH: all servers in all variants, ten minutes", "learn",
         (_lab(needed=False), Setting("STAGE", "test only one stage: now, or its number", example="now"), *JUDGING,
          Setting("WATCH", "test again after each change of your files", "flag")),
         "quest.command.labs:check", says="lab: "),
    Goal("hint", "show the next hint of a lab; with N=3 the third", "learn",
         (_lab(), Setting("N", "which hint", example="3")), "quest.command.labs:hint", says="lab: "),
    Goal("solution", "show how your server differs from ours", "learn",
         (_lab(), Setting("SURE", "show it also before you have all points", "flag", shown=False)),
         "quest.command.labs:solution", says="lab: "),
    Goal("reset", "begin a lab again; your files are kept beside it", "learn", (_lab(),), "quest.command.labs:reset",
         says="lab: "),
    Goal("my", "your own server, in 29 stages: what fails now, and what comes next", "learn",
         (Setting("STAGE", "check this stage, and not the next one", example="inline"),
          Setting("HINT", "a hint of the stage, 1 to 3", "number", "1"),
          Setting("ALL", "check every stage that has passed once more", "words", "yes", among=("yes",)),
          Setting("WATCH", "check again whenever you have saved a file", "words", "yes", among=("yes",)),
          Setting("SKIP", "leave this stage out", example="nocopy", shown=False)),
         "quest.my.commands:my", first=True, says="my: "),
    Goal("race", "compare your own server with ours and nginx: requests, memory, waiting; 90 s: build/race", "learn",
         (Setting("AGAINST", "the others: servers of ours (ratios are to the first of them), and of benchmarks/peers",
          example="09,15,nginx"),
          Setting("NAME", "whose server it is: shown by make board", example="ada"),
          Setting("PROFILE", "how long", "words", default="quick", among=("smoke", "quick", "full")),
          Setting("AGAIN", "measure again, even if your server has not changed", "flag")),
         "quest.my.race:race", says="race: ", goes_on=True),
    # ---- teach
    Goal("grade", "points for what was handed in", "teach",
         (_lab(), DIR, Setting("JSON", "write the points to this file", example="results.json"), *JUDGING, SANDBOX),
         "quest.command.labs:grade", says="lab: "),
    Goal("class", "find the student of each submission by the roster; list those that are unknown or double", "teach",
         (OF_CLASS, CLASS, GRADEBOOK, Setting("CSV", "the table; else DIR.students.csv", example="students.csv")),
         "quest.command.labs:of_class", says="lab: "),
    Goal("grade-all", "grade a class: DIR has a folder for each student, CSV gets a line for each", "teach",
         (_lab(), OF_CLASS, Setting("CSV", "the table; without it: DIR.csv", example="grades.csv"),
          CLASS, GRADEBOOK, Setting("STUDENT", "grade only this student, and again", example="jane"),
          Setting("JSON", "also write the points to this file", example="file"), *JUDGING, SANDBOX),
         "quest.command.labs:grade_all", says="lab: ", goes_on=True),
    Goal("reports", "write a report for each student of a class, to send back", "teach",
         (_lab(), GRADES, CLASS, NAMED), "quest.command.labs:reports", says="lab: "),
    Goal("gradebook", "write a class's grades into a copy of GRADEBOOK, to be imported; without GRADEBOOK: a list",
         "teach", (_lab(), GRADES, GRADEBOOK, CLASS, NAMED), "quest.command.labs:gradebook", says="lab: "),
    Goal("autograder", "a lab for Gradescope, without its solution", "teach", (_lab(), SANDBOX),
         "quest.command.labs:autograder", says="lab: "),
    Goal("handout", "a lab to hand out, without its solution", "teach",
         (_lab(), Setting("HINTS", "whether its hints are in it", "words", default="yes", among=("yes", "no"))),
         "quest.command.labs:handout", says="lab: "),
    Goal("questions", "the question bank: for students, or with answers for a teacher", "teach",
         (Setting("CH", "of one chapter", "chapter", "09"),
          Setting("ANSWERS", "with answers, and the mistake that each finds", "words", "yes", among=("yes",))),
         "quest.book.questions:show"),
    Goal("merge", "draw what the machines of a class have measured: a figure for each experiment", "teach",
         (Setting("RUNS", "for each machine its build/results, or the file that make share made",
          example='"folder run.zip ..."', needed=True),),
         "quest.command.labs:merge", says="lab: "),
    Goal("board", "the races of a class in one table of ratios, from a folder of their files: build/board", "teach",
         (DIR._replace(help="the files that make race has written", example="races", needed=True),
          Setting("NAMES", "a file of lines: name, tab, name on the board; or numbers", example="names.tsv")),
         "quest.my.board:board", says="board: "),
    # ---- speak
    Goal("slides", "the slides: build/slides/deck.html", "speak", (TRACK, *ABOUT_TALK)),
    Goal("present", "show the deck and play its demos, served by 15-slashdot", "speak", (TRACK, AT_8000),
         "quest.stage.cli:present_deck"),
    Goal("rehearse", "run every demo once, check limits and tools, and say what will work on stage", "speak", (),
         "quest.stage.cli:rehearse_all"),
    Goal("demo", "a demo of the talk in the terminal", "speak", (DEMO,), "quest.stage.cli:demo"),
    Goal("demo-record", "record the demos, to be shown where they do not run", "speak", (DEMO,),
         "quest.stage.cli:demo_record"),
    Goal("schedule", "minutes of every section and track of the deck; with TRACK: its slides, and when each begins",
         "speak", (TRACK,)),
    Goal("pdf", "PDFs to print: build/pdf/book.pdf, handout.pdf (two pages), deck.pdf, deck-notes.pdf", "speak",
         (TRACK, Setting("WHAT", "without the book", "words", "deck", among=("deck",)), *ABOUT_TALK)),
    Goal("release", "book, EPUB, decks and PDFs of the reference run, in one archive: build/release/quest-VERSION.zip",
         "speak"),
    # ---- maintain
    Goal("deps", "install what is missing, after a yes (DEPS=yes: without asking; DEPS=skip: never)", "maintain"),
    Goal("test", "run the tests; those of one server, or of one part, take a minute", "maintain",
         (_program("the tests of one server", needed=False, example="09"),
          Setting("ONLY", "a package of quest/, or a folder of tests/", "part", "stats"),
          Setting("ALL", "all, as CI does: on every server, in the simulated world, and what is slow", "words", "yes",
                  among=("yes",)))),
    Goal("variants", "build the programs in every variant that is measured", "maintain"),
    Goal("watch", "as make read, for writers: the book is made again whenever a chapter, figure or server changes",
         "maintain", (AT_8000,), "quest.learn.read:watch"),
    Goal("lint", "style, types, limits, text, data: everything that can be checked without running a server",
         "maintain"),
    Goal("readme", "update what README files print of the code: goals, numbers and figure; keys and rules", "maintain"),
    Goal("budgets", "lines and files of each folder, and how many it may have", "maintain", (),
         "quest.command.budgets:print_budgets"),
    Goal("help", "ten goals to begin with; ALL=1: all of them, in groups; GOAL=bench: one, with its settings",
         "maintain",
         (Setting("ALL", "every goal", "flag", shown=False), Setting("GOAL", "one goal", "goal", "bench", shown=False)),
         "quest.command.help:print_help"),
    Goal("clean", "remove what was generated; results and work/ stay", "maintain"),
    Goal("distclean", "remove all of build/, the results too", "maintain"),
    Goal("reference", "one session of the reference, by the registered judge, which takes hours: build/reference",
         "maintain",
         (ONLY, Setting("SESSION", "its name; without it: the one begun in the last three hours, or a new one",
          example="2026-11-26-2140"),
          Setting("VERDICTS", "measure only what a rule asks for; some 100 minutes", "words", "yes", among=("yes",)),
          Setting("SINCE", "the claims since 2003 in place of the talk's", "words", "yes", among=("yes",))),
         "quest.command.measuring:reference", says="", goes_on=True),
    Goal("register", "freeze the judge, and write benchmarks/registered.toml, before there are data", "maintain",
         (Setting("SINCE", "register the claims since 2003: benchmarks/registered-since.toml", "words", "yes",
                  among=("yes",)),),
         "quest.command.registering:register"),
    Goal("frozen", "check that the frozen judges give the same verdicts on the committed results as before", "maintain",
         (Setting("WRITE", "keep their verdicts on data that are new to them", "words", "yes", among=("yes",)),),
         "quest.command.registering:kept"),
    Goal("retest", "compare two sessions; and the registered judge with the judge of now", "maintain",
         (Setting("A", "reference, PROCESSOR/NAME or a folder; without A and B: all pairs", example="reference"),
          Setting("B", "the other session", example="intel-xeon/2026-11-27-0915")),
         "quest.command.registering:retest", says=""),
    Goal("recordings", "make all recordings again, or some: benchmarks/recordings", "maintain",
         (Setting("CH", "of one server", "server", "02-fork"), Setting("SCENE", "of one scene", "scene", "slow")),
         "quest.command.recordings:keep"),
    Goal("move-recordings", "correct line numbers in the recordings, of lines that have only moved", "maintain", (),
         "quest.command.recordings:move"),
    Goal("export", "numbers for figures, book and deck: build/data", "maintain", (), "quest.command.measuring:export",
         says=""),
    Goal("contents", "write chapters/contents.json again: what make next knows of the chapters", "maintain"),
    Goal("lint-book",
         "chapters and slides: template, style, minutes and notes, the map of the talk, regions not shown, citations",
         "maintain"),
    Goal("spelling", "chapters, slides, labs and each README in British English, with the words of chapters/words.txt",
         "maintain"),
    Goal("style", "count bad habits of style in chapters and notes; with CH: show the sentences", "maintain",
         (Setting("CH", "the sentences of a chapter and of its slides", "chapter", "09"),
          Setting("WRITE", "write chapters/style.tsv: only the counts that have sunk, or all anew", "words",
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
    Goal("sim-faults", "plant faults, and check that the simulated world finds them", "maintain",
         (Setting("ONLY", "only some of the faults", example="slow-never-leave"),)),
    Goal("vm", "10-kqueue and its tests in a virtual machine (DEPS=yes fetches FreeBSD's image)", "maintain",
         (Setting("OS", "which system", default="freebsd", example="netbsd"),
          Setting("IMAGE", "the disk of another system", example="disk"), Setting("KEY", "what opens it",
          example="file"),
          Setting("VM_ARGS", "for tests/bsd/vm.sh", shown=False))),
    Goal("fuzz", "the request parser against libFuzzer", "maintain",
         (Setting("FUZZ_SECONDS", "how long", "number", default="30"),)),
    Goal("mutants", "plant faults in the code, and count how many the tests find", "maintain",
         (Setting("N", "how many faults", "number", "170"), Setting("SEED", "decides which", "number", "1"),
          Setting("ONLY", "faults in these files", example="code/http"),
          Setting("RESULTS_OF", "the file that keeps the results", example="file.jsonl"),
          Setting("BEFORE", "compare with the results in this file", example="file.jsonl"))),
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
