# What the next mapping of one page costs while ever more are there: made, looked at, undone; and
# the same page read into a buffer.
experiment = "mmap-pages"
load "figures/style.gp"

name = word(variants, 1)
metrics = "mmap_us touch_us munmap_us read_us"
meanings = "'mmap()' 'first byte read' 'munmap()' 'pread(), no mapping'"
y_high = 0
level_high = 0
do for [m in metrics] {
    stats series(name) using m nooutput
    y_high = STATS_max > y_high ? STATS_max : y_high
    level_high = STATS_median > level_high ? STATS_median : level_high
}
# A bin that was disturbed must not press all curves flat.
y_high = y_high > 2 * level_high ? 2 * level_high : y_high

eval y_title("one page, µs")
set xlabel "mappings there"
set xrange [0:*]
set yrange [0:y_high * 1.15]
set rmargin 25
set key at graph 1.02, graph 0.9 left top

plot for [i=1:4] series(name) using "x":(low_of(word(metrics, i))):(high_of(word(metrics, i))) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder notitle, \
     for [i=1:4] series(name) using "x":word(metrics, i) with lines linetype i \
         title word(meanings, i)
