# How many of the processes that wait for a connection are woken by it: all, or one.
experiment = "prefork-herd"
load "figures/style.gp"

metric = "wakeups"
set logscale x 2
set logscale y 2
set xrange [0.9:*]
set yrange [0.8:*]
set xlabel "processes that wait"
eval y_title("wake-ups for each connection")
set key at graph 1.04, graph 1 left top Left reverse noenhanced font ",13"
set lmargin 8
set rmargin 31

# Several of the curves are one line: what is drawn first is drawn larger.
size_of(name) = 2.2 - 0.4 * (style_of(name) - 1)
plot for [name in variants] series(name) using "x":metric with linespoints \
         linetype style_of(name) pointsize size_of(name) title title_of(name)
