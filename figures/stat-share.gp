# Where the time goes in which a small file is found and read, by what is in memory beforehand: a point
# and its interval for each call.
experiment = "stat-share"
height = 480
load "figures/style.gp"

calls = "stat_us read_us open_us"
meanings = "'stat()' 'read() of 3 KB' 'open()'"
rows = words(variants)
x_low = 1e9
x_high = 0
do for [name in variants] {
    do for [m in calls] {
        stats series(name) using (low_of(m)) nooutput
        x_low = STATS_min < x_low ? STATS_min : x_low
        stats series(name) using (high_of(m)) nooutput
        x_high = STATS_max > x_high ? STATS_max : x_high
    }
}
x_low = 0.8 * x_low

set logscale x
set xrange [x_low:x_high * 1.3]
set yrange [-rows - 0.4:-0.4]
unset ytics
set format x "%.10g"
set grid noytics xtics linetype 1 linecolor rgb 0xdcdce2 linewidth 1 dashtype solid
set border 1
set xlabel "for one file, mean of a run, µs (logarithmic)"
set lmargin 24
set rmargin 4
set key at graph 1, graph 1.02 right bottom horizontal
do for [i=1:rows] {
    set label 100+i noenhanced title_of(word(variants, i)) at graph 0, first -i right \
        offset character -1, 0
}
# Three levels in a row, one below the other.
at(i, j) = -i + 0.22 * (2 - j)
plot for [j=1:3] for [i=1:rows] series(word(variants, i)) \
         using (column(word(calls, j))):(at(i, j)):(low_of(word(calls, j))):(high_of(word(calls, j))) \
         with xerrorbars linetype j dashtype solid linewidth 2 pointsize 1.1 \
         title (i == 1 ? word(meanings, j) : "")
