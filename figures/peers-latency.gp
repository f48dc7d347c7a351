# How long requests wait that come at a steady rate: the median, what one in a hundred exceeds, and
# one in a thousand; a panel for each of the rates.
experiment = "peers-latency"
load "figures/style.gp"

shown = variants
rows = words(shown)
nth(i) = word(shown, i)
height = 150.0 + 28 * (rows + 1)
eval open_canvas(height)

metrics = "median_us p99_us p999_us"
meanings = "'the median' 'one in a hundred waits longer' 'one in a thousand does'"
is_in(list, name) = strstrt(" " . list . " ", " " . name . " ") > 0
array symbols[3] = [7, 9, 6]
stats series(nth(1)) using "x" nooutput
array rates[2] = [STATS_min, STATS_max]
panels = rates[1] == rates[2] ? 1 : 2
x_low = 1e9
x_high = 0
measured = "" # too few requests have no thousandth
do for [name in shown] {
    do for [m in metrics] {
        stats series(name) using (given(m) && low_of(m) < x_low ? x_low = low_of(m) : 0) nooutput
        stats series(name) using (given(m) && high_of(m) > x_high ? x_high = high_of(m) : 0) nooutput
        stats series(name) using (given(m) && !is_in(measured, m) ? strlen(measured = measured . " " . m) : 0) nooutput
    }
}

set logscale x
set format x "%.0s%c"
set xrange [0.8 * x_low:1.25 * x_high]
set yrange [-rows - 0.6:-0.4]
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set border 1
set tmargin 4
set xlabel "wait, µs (logarithmic)"
set key at screen 0.99, screen 0.985 right top horizontal maxrows 1 font ",13" samplen 1
do for [i=1:rows] {
    set label 100+i noenhanced title_of(nth(i)) at graph 0, first -i right offset character -1, 0
}
shown_at(m, rate) = column("x") == rate && given(m) ? column(m) : NaN
set multiplot
do for [panel=1:panels] {
    set lmargin at screen (panel == 1 ? 0.18 : 0.61)
    set rmargin at screen (panel < panels ? 0.57 : 0.98)
    if (panel == 2) {
        unset key
        unset label
    }
    set label 30 sprintf("%.0f requests a second", rates[panel]) at graph 0, graph 1 left \
        offset 0, 0.7 textcolor rgb ink
    plot for [m=1:3] for [i=1:rows] series(nth(i)) \
             using (shown_at(word(metrics, m), rates[panel])):(-i): \
             (low_of(word(metrics, m))):(high_of(word(metrics, m))) \
             with xerrorbars linetype m dashtype solid pointtype symbols[m] pointsize 1 \
             title (i == 1 && is_in(measured, word(metrics, m)) ? word(meanings, m) : "")
}
unset multiplot
