# The curves of the reference run beside the reader's own, thin and dotted: `plot ... @thin`, a macro,
# as gnuplot takes a loop that has no turn for one of one. Loaded by a script that has set shown and
# metric; sets how far they reach.
thin = ""
there_x_high = -1e300
there_x_low = 1e300
there_high = -1e300
there_low = 1e300
compared = ""
do for [name in shown] {
    if (has_there(name)) {
        compared = compared . " " . name
        stats there(name) using "x" nooutput
        there_x_high = STATS_max > there_x_high ? STATS_max : there_x_high
        there_x_low = STATS_min < there_x_low ? STATS_min : there_x_low
        stats there(name) using metric nooutput
        there_high = STATS_max > there_high ? STATS_max : there_high
        there_low = STATS_min < there_low ? STATS_min : there_low
    }
}
if (compared ne "") {
    eval compare("dotted")
    thin = ", for [name in compared] there(name) using \"x\":metric with lines linewidth 1.5 " . \
        "dashtype (2, 3) linecolor rgb colours[style_of(name)]"
}
