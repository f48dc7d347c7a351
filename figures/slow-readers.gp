# Clients who ask and do not read: what the kernel holds for all of them, and how long the others wait when they
# come, by how much it may hold unsent for each. A bar a variant, over it the repetitions and the interval.
experiment = "slow-readers"
load "figures/style.gp"

rows = words(variants)
height = 165.0 + 30 * rows
eval open_canvas(height)
nth(i) = word(variants, i)
is_ours(i) = nth(i) eq "15-slashdot"
what(panel) = panel == 1 ? "kernel_mb" : "max_ms"
named(panel) = panel == 1 ? "memory of the kernel's TCP, MB" : "longest wait of the others, ms"
most(panel) = panel == 1 ? mb_high : ms_high

step(high) = 10 ** floor(log10(high)) * (high < 3 * 10 ** floor(log10(high)) ? 0.5 : 2)

mb_high = 0
ms_high = 0
do for [i=1:rows] {
    stats points(nth(i)) using what(1) nooutput
    mb_high = STATS_max > mb_high ? STATS_max : mb_high
    stats points(nth(i)) using what(2) nooutput
    ms_high = STATS_max > ms_high ? STATS_max : ms_high
}
do for [i=1:rows] {
    set label 100+i noenhanced title_of(nth(i)) at graph 0, first -i right \
        offset character -1, 0 textcolor rgb (is_ours(i) ? inks[1] : ink)
}
unset key
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set border 1
set yrange [-rows - 0.6:-0.4]
set tmargin at screen 1 - 20.0 / height
set bmargin at screen 125.0 / height

set multiplot
do for [panel=1:2] {
    if (panel == 2) { unset label }
    set lmargin at screen (panel == 1 ? 0.17 : 0.62)
    set rmargin at screen (panel == 1 ? 0.55 : 0.97)
    set xrange [0:1.1 * most(panel)]
    set xtics step(most(panel))
    set xlabel named(panel)
    plot for [i=1:rows] series(nth(i)) using (0):(-i):(0):(column(what(panel))):(-i - 0.32):(-i + 0.32) \
             with boxxyerror fillstyle solid linecolor rgb (is_ours(i) ? colours[1] : tints[1]), \
         for [i=1:rows] points(nth(i)) using (column(what(panel))):(-i) with points pointtype 7 \
             pointsize 0.25 linecolor rgb 0x8a8a92, \
         for [i=1:rows] series(nth(i)) using (column(what(panel))):(-i):(low_of(what(panel))):(high_of(what(panel))) \
             with xerrorbars pointtype 0 dashtype solid linecolor rgb ink linewidth 1.5
}
unset multiplot
