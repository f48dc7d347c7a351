# The toy shop: with the largest crowd, how much of it a server holds (paler: what the crowd takes for
# held), how many of the customer's requests are answered, and how long these wait.
experiment = "toy-shop"
height = 430
load "figures/style.gp"

shown = variants
rows = words(shown)
nth(i) = word(shown, i)
array when[3] = ["before", "during", "after"]
array says[3] = ["before", "during", "after"]
array points_of[3] = [6, 7, 4] # a hollow circle, a filled one, a hollow square
x_high = 0
do for [name in shown] {
    stats series(name) using "x" nooutput
    x_high = STATS_max > x_high ? STATS_max : x_high
}
last(value) = column("x") == x_high ? value : NaN
cell(name) = last(given(name) ? column(name) : NaN)
taken(_) = last(column("during_sockets") - column("before_sockets")) # the listening ones are in both
share(when) = last(given(when . "_good") ? \
    100.0 * column(when . "_good") / (column(when . "_good") + column(when . "_failed")) : NaN)
ms(name) = given(name) ? column(name) / 1e3 : NaN
lower(when) = last(ms(given(when . "_us_low") ? when . "_us_low" : when . "_us"))
upper(when) = last(ms(given(when . "_us_high") ? when . "_us_high" : when . "_us"))
apart(j) = (j - 2) * 0.2 # three symbols one below the other

set yrange [rows + 0.6:0.4]
unset grid
set grid xtics linetype 1 linecolor rgb 0xdcdce2 linewidth 1 dashtype solid
unset ytics
unset key
do for [i=1:rows] {
    set label 100 + i noenhanced title_of(nth(i)) at screen 0.125, first i right font ",13"
}
do for [j=1:3] {
    set label 110 + j says[j] at screen 0.30 + 0.13 * j, screen 0.955 left offset 0.8, 0 font ",13" \
        point pointtype points_of[j] pointsize 1 linecolor rgb colours[j]
}
set label 120 "▲ the slowest 1 %" at screen 0.97, screen 0.955 right font ",13" \
    textcolor rgb faint
set label 121 "paler: as the crowd sees it" at screen 0.135, screen 0.955 left font ",13" \
    textcolor rgb faint
set multiplot
set lmargin at screen 0.135
set rmargin at screen 0.335
set xrange [0:x_high]
set xtics x_high / 2
set format x tick_format(x_high)
set xlabel "held of " . (x_high < 1000 ? sprintf("%d", x_high) : gprintf("%.0s%c", x_high))
plot for [i=1:rows] series(nth(i)) using (0):(i):(0):(cell("held")):(i - 0.25):(i + 0.25) \
         with boxxyerror fillstyle solid border linecolor rgb colours[1] linecolor rgb tints[1] \
         dashtype solid, \
     for [i=1:rows] series(nth(i)) using (0):(i):(0):(taken(0)):(i - 0.25):(i + 0.25) \
         with boxxyerror linecolor rgb colours[1]
unset label
set lmargin at screen 0.395
set rmargin at screen 0.555
set xrange [0:100]
set xtics 50
set format x "%g"
set xlabel "answered in time, %"
plot for [i=1:rows] for [j=1:3] series(nth(i)) using (share(when[j])):(i + apart(j)) \
         with points pointtype points_of[j] pointsize 1 linecolor rgb colours[j]
set lmargin at screen 0.60
set rmargin at screen 0.97
set logscale x
set xrange [*:*]
set autoscale xfix
set offsets graph 0.05, graph 0.05, 0, 0
set xtics autofreq
set xlabel "median wait, ms (logarithmic)"
plot for [i=1:rows] for [j=1:3] series(nth(i)) using (last(ms(when[j] . "_p99_us"))):\
         (i + apart(j)) with points pointtype 9 pointsize 0.8 linecolor rgb colours[j], \
     for [i=1:rows] for [j=1:3] series(nth(i)) using (last(ms(when[j] . "_us"))):(i + apart(j)):\
         (lower(when[j])):(upper(when[j])) with xerrorbars pointtype points_of[j] pointsize 1 \
         dashtype solid linecolor rgb colours[j]
unset multiplot
