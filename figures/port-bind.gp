# What a free port costs while ever more are in use: chosen by bind(), or, once the address alone is
# bound, by connect().
experiment = "port-bind"
load "figures/style.gp"

metric = "total_us"
shown = variants
x_high = 0
y_low = 0
y_high = 0
do for [name in shown] {
    stats points(name) using "x" nooutput
    x_high = STATS_max > x_high ? STATS_max : x_high
    stats points(name) using metric nooutput
    y_high = STATS_max * 1.3 > y_high ? STATS_max * 1.3 : y_high
    y_low = y_low == 0 || STATS_min / 1.3 < y_low ? STATS_min / 1.3 : y_low
}

eval y_title("until there is a port, and a connection if one is made, µs (logarithmic)")
set xlabel "ports in use"
set logscale y
set xrange [0:x_high * 1.01]
set yrange [y_low:y_high]
set format y "%.0s%c"
unset key
set lmargin 8
set rmargin 27
logarithmic = 1
load "figures/labels.gp"

nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using "x":metric with points pointtype 7 pointsize 0.25 \
         linecolor rgb tints[i], \
     for [i=1:words(shown)] series(nth(i)) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":metric with lines linetype i
