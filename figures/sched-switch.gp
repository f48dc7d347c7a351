# What it costs to hand the processor on, against the number of processes: all in the ring, or two
# of them and the others asleep or busy beside.
experiment = "sched-switch"
load "figures/style.gp"

metric = "handover_us"
shown = variants
in_all(_) = column("x") + 2
y_low = 0
y_high = 0
pipe = 0
do for [name in shown] {
    stats series(name) using (high_of(metric)) nooutput
    y_high = STATS_max * 1.08 > y_high ? STATS_max * 1.08 : y_high
    stats series(name) using "pipe_us" nooutput
    pipe = pipe == 0 ? STATS_median : pipe
}

eval y_title("write, change of process, read, µs")
set xlabel "processes in all (logarithmic)"
set logscale x
set xrange [1.8:*]
set yrange [y_low:y_high]
unset key
set lmargin 8
set rmargin 23
load "figures/labels.gp"
set label 30 "write and read alone, in one process" at graph 1, first pipe right \
    offset character -1, 0.5 font ",12" textcolor rgb faint
set arrow 31 from graph 0, first pipe to graph 1, first pipe nohead linewidth 1 \
    linecolor rgb faint

nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using (in_all(0)):metric with points pointtype 7 \
         pointsize 0.25 linecolor rgb tints[i], \
     for [i=1:words(shown)] series(nth(i)) using (in_all(0)):(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using (in_all(0)):metric with linespoints linetype i
