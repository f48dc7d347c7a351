# Who runs, who waits and in which call, while one server serves four clients: a row for each client
# and for each process or thread. Drawn from a trace; one script for the experiments
# timeline-<slug>.
experiment = slug
rows = (exists("data") ? data : "build/data") . "/" . experiment . "/rows.tsv"
highest = system("sed -n 2p '" . rows . "' 2>/dev/null | cut -f1")
row_count = highest eq "" ? 6 : int(highest)
height = 150 + 34 * (row_count + 1)
load "figures/style.gp"
small = ",13"
advance = 7.6 # of a letter, in pixels

bars = folder . "bars.tsv"
arrows = folder . "arrows.tsv"
stats bars using "end_ms" nooutput
last = ceil(STATS_max)
stats bars using "start_ms" nooutput
first = floor(STATS_min)
forks = int(system("grep -c spawn '" . arrows . "'")) > 0
maker = strstrt(system("cut -f3 '" . rows . "'"), "thread 1") ? "new thread" : "forked"

# The clients stand above the gap, the tasks below it.
set lmargin 13
set rmargin 2
set tmargin 0.5
set bmargin (remarks ne "" ? 8 : 7)
set border 1
set xrange [first:last]
set yrange [0.4:row_count + 0.6]
set xtics 50
set xlabel "milliseconds after A connects"
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xececf0 linewidth 1 dashtype solid
set key at screen 0.55, screen 46.0 / height center center horizontal maxcols 4 maxrows 1
set key samplen 2 font small
task_rows = row_count - 5
set label 10 "clients" at graph 0, first row_count - 1.5 center rotate by 90 \
    offset character -9.5, 0 font small textcolor rgb faint
set label 11 "server" at graph 0, first 0.5 + task_rows / 2.0 center rotate by 90 \
    offset character -9.5, 0 font small textcolor rgb faint

# Nobody's time is grey; the palette starts at 1. These read the columns of the row at hand, so the
# argument is of no use; gnuplot knows no function without one.
client(_) = int(column("client"))
state(_) = stringcolumn("state")
full(_) = client(0) > 0 ? colours[client(0)] : 0x8a8a92
pale(_) = client(0) > 0 ? tints[client(0)] : 0xececf0
word_ink(_) = client(0) > 0 ? inks[client(0)] : ink
waits(_) = state(0) eq "waiting" || state(0) eq "connecting"
works(_) = state(0) eq "running" || state(0) eq "receiving"
when(condition, y) = condition ? y : NaN

# A bar, and an arrow between two rows, end half a bar's height from the middle of the row.
half = 0.32
bottom(_) = column("y") - half
top(_) = column("y") + half
kind_is(kind) = stringcolumn("kind") eq kind
client_y(_) = row_count + 1 - client(0)

# What stands in a bar: the longest of three wordings that fits.
pixels = (width - 13 * 9.0 - 20) / (last - first)
span(_) = column("end_ms") - column("start_ms")
fits(words) = strlen(words) * advance + 8 < span(0) * pixels
longest(a, b, c) = fits(a) ? a : fits(b) ? b : fits(c) ? c : ""
whom(letter) = letter eq "" || letter eq "-" ? "" : " for " . letter
in_call(call, whom) = longest("waits in " . call . "()" . whom, call . "()", call)
in_task(_) = in_call(stringcolumn("call"), whom(stringcolumn("letter")))
in_client(_) = state(0) eq "pausing" ? \
    longest("pauses in the middle of its request", "pauses", "") : \
    longest("is connected at once, then waits for the reply", "waits for the reply", "waits")
says(_) = state(0) ne "waiting" && state(0) ne "pausing" ? "" : \
    kind_is("task") ? in_task(0) : in_client(0)

plot arrows using "ms":(when(kind_is("accept"), client_y(0) - half)): \
         (0):(column("to_y") - client_y(0) + 2 * half):(full(0)) with vectors head filled \
         size character 0.7, 20 linewidth 1.2 dashtype (3, 3) linecolor rgb variable notitle, \
     arrows using "ms":(when(kind_is("spawn"), column("from_y") - half)): \
         (0):(column("to_y") - column("from_y") + 2 * half):(full(0)) with vectors head filled \
         size character 0.7, 20 linewidth 1.2 dashtype solid linecolor rgb variable notitle, \
     bars using "start_ms":(when(waits(0), column("y"))):"start_ms":"end_ms": \
         (bottom(0)):(top(0)):(pale(0)) with boxxyerror \
         fillstyle solid noborder dashtype solid linecolor rgb variable notitle, \
     bars using "start_ms":(when(state(0) eq "pausing", column("y"))):"start_ms":"end_ms": \
         (bottom(0)):(top(0)):(full(0)) with boxxyerror \
         fillstyle empty linewidth 1 dashtype (5, 4) linecolor rgb variable notitle, \
     bars using "start_ms":(when(works(0), column("y"))):"start_ms":"end_ms": \
         (bottom(0)):(top(0)):(full(0)) with boxxyerror \
         fillstyle solid border linewidth 1 dashtype solid linecolor rgb variable notitle, \
     bars using (column("start_ms") + 4 / pixels):"y":(says(0)):(word_ink(0)) \
         with labels left noenhanced font small textcolor rgb variable notitle, \
     rows using (first):"y":"name" with labels right offset character -1, 0 notitle, \
     NaN with boxes fillstyle solid linecolor rgb 0x5c5c64 title "running", \
     NaN with boxes fillstyle solid linecolor rgb 0xd8d8dc title "waiting", \
     NaN with lines linewidth 1.2 dashtype (3, 3) linecolor rgb ink title "accepted", \
     NaN with lines linewidth 1.2 dashtype solid linecolor rgb (forks ? ink : 0xffffff) \
         title (forks ? maker : "")
