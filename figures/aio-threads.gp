# How many threads the C library starts for reads that all have to wait.
experiment = "aio-threads"
load "figures/style.gp"

wanted = ""
do for [name in "musl pipes pipe"] { wanted = wanted . (has(name) ? " " . name : "") }
if (words(wanted) == 0) { printerr missing; exit status 77 }
metric = "threads"
shown = wanted
logarithmic = 1
x_high = 0
y_high = 1
do for [name in shown] {
    stats points(name) using "x" nooutput # both at once would complain of two points in a line
    x_high = STATS_max > x_high ? STATS_max : x_high
    stats points(name) using metric nooutput
    y_high = STATS_max > y_high ? STATS_max : y_high
}
y_low = 0.7
y_high = 1.4 * y_high

set logscale xy 2
eval y_title("threads started (logarithmic)")
set xlabel "reads asked for at once, none of which can end (logarithmic)"
set xrange [0.9:1.1 * x_high]
set yrange [y_low:y_high]
unset key
set rmargin 31
load "figures/labels.gp"

nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using "x":metric with points pointtype 7 \
         pointsize 0.4 linecolor rgb tints[style_of(nth(i))], \
     for [i=1:words(shown)] series(nth(i)) using "x":metric with linespoints \
         linetype style_of(nth(i)) pointsize 0.6
