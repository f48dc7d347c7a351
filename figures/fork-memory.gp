# What fork costs against the memory of the parent, with pages of two sizes: what is copied are the
# entries of the page tables, and the larger page needs 512 times fewer. Both axes are logarithmic,
# so the parent that holds nothing is left out.
experiment = "fork-memory"
load "figures/style.gp"

metric = "fork_us"
shown = variants
logarithmic = 1
y_low = 1e9
y_high = 0
x_high = 0
do for [name in shown] {
    stats points(name) using "x":metric nooutput
    x_high = STATS_max_x > x_high ? STATS_max_x : x_high
    y_high = STATS_max_y > y_high ? STATS_max_y : y_high
    y_low = STATS_min_y < y_low ? STATS_min_y : y_low
}
y_low = 0.7 * y_low
y_high = 1.4 * y_high

set logscale x 2
set logscale y
eval y_title("fork() in the parent, µs (logarithmic)")
set xlabel "memory the parent holds, MiB (logarithmic)"
set xrange [1.8:x_high * 1.05]
set yrange [y_low:y_high]
unset key
set rmargin 18
load "figures/labels.gp"

above_0(_) = column("x") > 0 ? column("x") : NaN
nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using (above_0(0)):metric with points pointtype 7 \
         pointsize 0.25 linecolor rgb tints[i], \
     for [i=1:words(shown)] series(nth(i)) using (above_0(0)):(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using (above_0(0)):metric with linespoints linetype i \
         pointsize 0.6
