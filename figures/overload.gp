# What impatient clients get, as they ask for more than the disks can give: to the left of the bend what they
# ask for, to the right of it what the server makes of it.
experiment = "overload"
load "figures/style.gp"

metric = "goodput"
shown = variants
x_high = 0
y_low = 0
y_high = 0
do for [name in shown] {
    stats points(name) using "x" nooutput # both at once would complain of two points in a line
    x_high = STATS_max > x_high ? STATS_max : x_high
    stats points(name) using metric nooutput
    y_high = STATS_max > y_high ? STATS_max : y_high
}
y_high = 1.15 * y_high

eval y_title("answered within half a second, requests a second")
set xlabel "asked, requests a second"
set xrange [0:1.02 * x_high]
set yrange [y_low:y_high]
unset key
set lmargin 8
set rmargin 23
load "figures/labels.gp"
set label 50 "all that is asked" at first y_high, first 0.97 * y_high left \
    offset character 0.5, 0 font ",12" textcolor rgb faint

nth(i) = word(shown, i)
plot x linetype 1 linewidth 1 dashtype (2, 3) linecolor rgb faint, \
     for [i=1:words(shown)] points(nth(i)) using "x":metric with points pointtype 7 \
         pointsize 0.25 linecolor rgb tints[i], \
     for [i=1:words(shown)] series(nth(i)) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":metric with linespoints linetype i \
         pointsize 0.6
