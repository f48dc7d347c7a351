# What it costs to start another program, while the parent holds ever more memory: fork copies the
# page tables that exec then throws away, the others do not.
experiment = "spawn"
load "figures/style.gp"

# The variants that hold memory; the others compare libraries, at 0.
shown = ""
point_low = 1e9
y_high = 0
x_high = 0
do for [name in "fork-exec vfork-exec posix_spawn clone3-exec"] {
    if (has(name)) {
        shown = shown . " " . name
        stats points(name) using "x":"total_us" nooutput
        x_high = STATS_max_x > x_high ? STATS_max_x : x_high
        y_high = STATS_max_y > y_high ? STATS_max_y : y_high
        point_low = STATS_min_y < point_low ? STATS_min_y : point_low
    }
}
if (words(shown) == 0) { printerr missing; exit status 77 }
metric = "total_us"
logarithmic = 1
y_low = 0.7 * point_low
y_high = 1.4 * y_high

set logscale y
eval y_title("call to the end of the new program, µs (logarithmic)")
set xlabel "memory the parent holds in pages of 4 KiB, MiB"
set xrange [0:x_high * 1.01]
set yrange [y_low:y_high]
unset key
set rmargin 16
load "figures/labels.gp"

nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using "x":metric with points pointtype 7 pointsize 0.25 \
         linecolor rgb tints[style_of(nth(i))], \
     for [i=1:words(shown)] series(nth(i)) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[style_of(nth(i))] \
         fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":metric \
         with linespoints linetype style_of(nth(i)) pointsize 0.6
