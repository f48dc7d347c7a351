# How long a woken process waits while others want its processor: the median, what one in ten
# exceeds, and the longest wait of each repetition.
experiment = "wake-latency"
load "figures/style.gp"

metrics = "wake_us wake_p90_us wake_max_us"
meanings = "'median' 'one in ten is longer' 'the longest'"
shown = ""
do for [name in "busy many"] { if (has(name)) { shown = shown . " " . name } }
if (shown eq "") { printerr "no run with others beside: " . missing; exit status 77 }

eval y_title("write() until the woken process runs, µs (logarithmic)")
set xlabel "others that are busy (logarithmic)"
set logscale x 2
set logscale y
set xrange [0.9:*]
set yrange [1:*]
set format y "%.0s%c"
set rmargin 27
set key at graph 1.02, graph 0.9 left top
if (has("alone")) {
    stats series("alone") using "wake_us" nooutput
    set arrow 31 from graph 0, first STATS_median to graph 1, first STATS_median nohead \
        linewidth 1 linecolor rgb faint
    set label 30 "nobody beside: the median" at graph 1, first STATS_median right \
        offset character -1, -0.6 font ",12" textcolor rgb faint
}

plot for [name in shown] for [i=1:3] points(name) using "x":word(metrics, i) with points \
         pointtype 7 pointsize 0.25 linecolor rgb tints[i] notitle, \
     for [name in shown] for [i=1:3] series(name) using "x":word(metrics, i) with linespoints \
         linetype i pointsize 0.7 title (name eq word(shown, 1) ? word(meanings, i) : "")
