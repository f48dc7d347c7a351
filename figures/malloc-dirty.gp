# What a child stops sharing because it calls malloc and free, without writing into a single block;
# in grey what it asked for. Both axes are logarithmic, so the child that asks for nothing stands at
# the left edge, at one half.
experiment = "malloc-dirty"
load "figures/style.gp"

metric = "dirty_kib"
shown = variants
logarithmic = 1
y_low = 1e9
y_high = 0
x_high = 0
do for [name in shown] {
    stats series(name) using "x":metric nooutput
    x_high = STATS_max_x > x_high ? STATS_max_x : x_high
    y_high = STATS_max_y > y_high ? STATS_max_y : y_high
    y_low = STATS_min_y < y_low ? STATS_min_y : y_low
}
asked = series(word(shown, 1))
stats asked using (asked_last = column("asked_kib")) nooutput
y_low = 0.6 * y_low
y_high = 2 * y_high
at(_) = column("x") > 0 ? column("x") : 0.5

set logscale x 4
set logscale y
eval y_title("memory of its own, KiB (logarithmic)")
set xlabel "blocks of 16 to 512 bytes the child asked for and freed (logarithmic)"
set xtics add ("none" 0.5)
set xrange [0.4:x_high * 1.1]
set yrange [y_low:y_high]
unset key
set rmargin 22
load "figures/labels.gp"
set label 200 "asked for" at first x_high / 16.0, asked_last / 16.0 left offset character 1, -0.6 \
    textcolor rgb faint

nth(i) = word(shown, i)
plot asked using (column("x") > 0 ? column("x") : NaN):"asked_kib" with lines linewidth 1.5 \
         dashtype solid linecolor rgb 0x8a8a92, \
     for [i=1:words(shown)] points(nth(i)) using (at(0)):metric with points pointtype 7 \
         pointsize 0.25 linecolor rgb tints[i], \
     for [i=1:words(shown)] series(nth(i)) using (at(0)):metric with linespoints linetype i \
         pointsize 0.6
