# How long an ordinary request waits while idle connections hold the threads of a pool: a step where
# the last thread is taken. Below it the machine's speed counts, above it the server's time-out.
experiment = "pool-queueing"
load "figures/style.gp"

metric = "latency_ms"
shown = variants
y_low = 1e9
y_high = 0
do for [name in shown] {
    stats series(name) using metric nooutput
    y_low = STATS_min < y_low ? STATS_min : y_low
    y_high = STATS_max > y_high ? STATS_max : y_high
}
y_low = 10**floor(log10(y_low))
y_high = 10**ceil(log10(y_high))

set logscale x 2
set logscale y
set xrange [0.8:*]
set yrange [y_low:y_high]
set format y "%g"
set xlabel "idle connections"
eval y_title("median wait of an ordinary request, ms")

set key at graph 1.04, graph 1 left top Left reverse font ",13"
set rmargin 33
plot for [name in shown] series(name) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[style_of(name)] \
         fillstyle transparent solid 0.6 noborder notitle, \
     for [name in shown] series(name) using "x":metric with linespoints linetype style_of(name) \
             title title_of(name)
