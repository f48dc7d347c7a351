# How much later than asked a time-out ends, with the slack that the kernel allows itself, and
# without.
experiment = "timeout-accuracy"
load "figures/style.gp"

metric = "late_us"
shown = ""
do for [name in variants] { if (name[1:5] ne "event") { shown = shown . " " . name } }
y_low = 0
y_high = 0
do for [name in shown] {
    stats points(name) using metric nooutput
    y_high = STATS_max * 1.3 > y_high ? STATS_max * 1.3 : y_high
    y_low = y_low == 0 || STATS_min / 1.3 < y_low ? STATS_min / 1.3 : y_low
}

eval y_title("later than asked, µs (logarithmic)")
set xlabel "time-out asked for, µs (logarithmic)"
set logscale x
set logscale y
set xrange [8:*]
set yrange [y_low:y_high]
set format x "%.0s%c"
set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
unset key
set rmargin 22
logarithmic = 1
load "figures/labels.gp"

nth(i) = word(shown, i)
plot for [i=1:words(shown)] points(nth(i)) using "x":metric with points pointtype 7 pointsize 0.25 \
         linecolor rgb tints[i], \
     for [i=1:words(shown)] series(nth(i)) using "x":metric with linespoints linetype i \
         pointsize 0.7
