# One curve a variant as in curves.gp, both axes logarithmic. Loaded by a script that has set
# metric, y_text and x_text.
shown = variants
logarithmic = 1
x_low = 1e9
x_high = 0
y_low = 1e9
y_high = 0
do for [name in shown] {
    stats points(name) using "x" nooutput # both at once would complain of two points in a line
    x_low = STATS_min < x_low ? STATS_min : x_low
    x_high = STATS_max > x_high ? STATS_max : x_high
    stats points(name) using metric nooutput
    y_low = STATS_min < y_low ? STATS_min : y_low
    y_high = STATS_max > y_high ? STATS_max : y_high
}
load "figures/reference.gp"
x_low = there_x_low < x_low ? there_x_low : x_low
x_high = there_x_high > x_high ? there_x_high : x_high
y_low = there_low < y_low ? there_low : y_low
y_high = there_high > y_high ? there_high : y_high
y_low = 0.7 * y_low
y_high = 1.4 * y_high

set logscale xy
eval y_title(y_text)
set xlabel x_text
set xrange [0.9 * x_low:1.1 * x_high]
set yrange [y_low:y_high]
load "figures/decades.gp"
unset key
set lmargin 9
set rmargin 23
load "figures/labels.gp"

nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using "x":metric with points pointtype 7 \
         pointsize 0.25 linecolor rgb tints[i], \
     for [i=1:words(shown)] series(nth(i)) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":metric with linespoints linetype i \
         pointsize 0.6 @thin
