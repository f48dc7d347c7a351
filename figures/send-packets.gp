# How long a reply takes, and in how many packets it comes, by the way head and body are joined: the
# first size is filled, the second is hollow.
experiment = "send-packets"
height = 400
load "figures/style.gp"

shown = variants
nth(i) = word(shown, i)
stats series(nth(1)) using "x" nooutput
x_low = STATS_min
x_high = STATS_max
of(x) = sprintf("%.0f bytes", x)
at(x, metric) = column("x") == x ? column(metric) : NaN

set yrange [words(shown) + 0.6:0.4]
unset grid
set grid xtics linetype 1 linecolor rgb 0xdcdce2 linewidth 1 dashtype solid
unset ytics
do for [i=1:words(shown)] {
    set label 100 + i noenhanced title_of(nth(i)) at screen 0.27, first i right font ",13"
}
unset key
set multiplot
set lmargin at screen 0.28
set rmargin at screen 0.63
set logscale x
set format x "%g"
set xlabel "median wait, ms (logarithmic)"
plot for [i=1:words(shown)] series(nth(i)) using (at(x_low, "median_ms")):(i):\
         (low_of("median_ms")):(high_of("median_ms")) with xerrorbars pointtype 7 pointsize 1.1 \
         dashtype solid linecolor rgb colours[1], \
     for [i=1:words(shown)] series(nth(i)) using (at(x_high, "median_ms")):(i):\
         (low_of("median_ms")):(high_of("median_ms")) with xerrorbars pointtype 6 pointsize 1.1 \
         dashtype solid linecolor rgb colours[2]
do for [i=1:words(shown)] { unset label 100 + i }
unset label 1000
unset label 1001
set lmargin at screen 0.69
set rmargin at screen 0.97
unset logscale x
set xrange [0:*]
set xtics 1
set format x "%g"
set xlabel "packets in a reply"
set key at screen 0.97, screen 0.98 right top horizontal maxrows 1 font ",12"
plot for [i=1:words(shown)] series(nth(i)) using (at(x_low, "reply_packets")):(i) \
         with points pointtype 7 pointsize 1.1 linecolor rgb colours[1] \
         title i == 1 ? of(x_low) : "", \
     for [i=1:words(shown)] series(nth(i)) using (at(x_high, "reply_packets")):(i) \
         with points pointtype 6 pointsize 1.1 linecolor rgb colours[2] \
         title i == 1 ? of(x_high) : ""
unset multiplot
