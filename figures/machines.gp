# The headline ratios: a strip for each, in it a dot for each machine, the reference run's in ink and the reader's own in colour.
# Ratios that are very large stand below the others, on an axis of their own. Data: quest/report/machines.py.
experiment = "machines"
load "figures/style.gp"
if (machines > 1) { set label 1000 noenhanced footer } # it names them all

dots = folder . "dots.tsv"
small = rows - large
top = 70.0 # pixels: above the strips, below those of a part, for each strip
axis = 66.0
strip = 26.0
height = top + rows * strip + (small ? axis : 0) + (large ? axis : 0) + 40
eval open_canvas(height)
up(pixels) = 1 - pixels / height # as a share of the canvas, from its top

array grounds[3] = [0x8a8a92, ink, colours[2]]
array names[3] = ["other machines", "reference run", "yours"]
shown(whose) = whose == 0 ? others : whose == 1 ? referred : yours
set multiplot
do for [whose=0:2] {
    if (shown(whose)) {
        x = 0.34 + 0.2 * whose
        set object 10 + whose circle at screen x, up(28.0) size screen 0.007 fillstyle solid noborder \
            fillcolor rgb grounds[whose + 1] front
        set label 10 + whose names[whose + 1] at screen x + 0.018, up(28.0) left
    }
}
set lmargin at screen 0.52
set rmargin at screen 0.96
set border 1
set grid xtics linetype 1 linecolor rgb 0xdcdce2 linewidth 1 dashtype solid
unset key
set logscale x
set ytics noenhanced scale 0
of(whose) = column("whose") == whose ? column("value") : NaN
do for [part=1:2] {
    count = part == 1 ? small : large
    if (count) {
        begin = part == 1 ? 1 : small + 1
        from = part == 1 ? top : top + (small ? small * strip + axis : 0)
        set tmargin at screen up(from)
        set bmargin at screen up(from + count * strip)
        set xrange [*:*]
        set yrange [*:*]
        stats dots using (column("place") >= begin && column("place") < begin + count ? column("value") : NaN) nooutput
        set yrange [begin + count - 0.5:begin - 0.5]
        low = STATS_min < 1 ? STATS_min : 1
        set xrange [0.85 * (part == 1 ? low : STATS_min):1.2 * STATS_max]
        if (part == 1) {
            set xtics (0.25, 0.5, 1, 2, 4, 8, 16)
            set arrow 1 from 1, begin - 0.5 to 1, begin + count - 0.5 nohead linecolor rgb faint dashtype (3, 3)
            set xlabel "ratio (logarithmic)" offset 0, 0.4
        } else {
            set xtics ("100" 100, "1000" 1000, "10 000" 10000, "100 000" 100000)
            unset arrow 1
            set xlabel "large ratios (logarithmic)" offset 0, 0.4
        }
        plot folder . "titles.tsv" using (1):"place":ytic(stringcolumn("title")) with points pointtype -1, \
             for [whose=0:2] dots using (of(whose)):"place":(end_of("low", "value")):(end_of("high", "value")) \
                 with xerrorbars pointtype 0 linewidth 1.5 dashtype solid linecolor rgb grounds[whose + 1], \
             for [whose=0:2] dots using (of(whose)):"place" with points pointtype 7 \
                 pointsize (whose == 2 ? 0.9 : 0.65) linecolor rgb grounds[whose + 1]
        do for [whose=0:2] { unset object 10 + whose; unset label 10 + whose }
        unset label 1000
    }
}
unset multiplot
