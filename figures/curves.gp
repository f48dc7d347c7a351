# One curve a variant: every repetition as a pale dot, as the figures of 2003 had it, over it the
# median and its interval. Loaded by a script that has set metric, y_text and x_text.
shown = variants
x_high = 0
point_high = 0 # the highest of all repetitions
curve_high = 0 # the highest median
level_high = 0 # the highest level of a whole curve
do for [name in shown] {
    stats points(name) using "x" nooutput # both at once would complain of two points in a line
    x_high = STATS_max > x_high ? STATS_max : x_high
    stats points(name) using metric nooutput
    point_high = STATS_max > point_high ? STATS_max : point_high
    stats series(name) using metric nooutput
    curve_high = STATS_max > curve_high ? STATS_max : curve_high
    level_high = STATS_median > level_high ? STATS_median : level_high
}
# A few repetitions that were disturbed must not press all curves flat. What lies above is not left
# out: it is marked at the edge, and counted.
load "figures/reference.gp"
x_high = there_x_high > x_high ? there_x_high : x_high
y_low = 0
enough = 1.15 * curve_high > 2.5 * level_high ? 1.15 * curve_high : 2.5 * level_high
y_high = 1.1 * point_high < enough ? 1.1 * point_high : enough
y_high = 1.1 * there_high > y_high ? 1.1 * there_high : y_high
above = 0
if (point_high > y_high) {
    do for [name in shown] {
        stats points(name) using (above = above + (column(metric) > y_high)) nooutput
    }
    set label 1004 sprintf("%d of the dots, marked at the upper edge, lie higher: up to %s", \
        above, number_text(point_high)) at graph 1, graph 1 right offset 0, 0.5 font ",11" textcolor rgb faint
}

eval y_title(y_text)
set xlabel x_text
set xrange [0:x_high * 1.01]
set yrange [y_low:y_high]
unset key
set rmargin 19
load "figures/labels.gp"

nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using "x":metric with points pointtype 7 pointsize 0.25 \
         linecolor rgb tints[i], \
     for [i=1:words(shown)] points(nth(i)) using "x":(column(metric) > y_high ? y_high : NaN) \
         with points pointtype 9 pointsize 0.5 linecolor rgb colours[i], \
     for [i=1:words(shown)] series(nth(i)) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":metric with lines linetype i @thin
