# What it costs to look at one more small file through a mapping of its own, while ever more are
# mapped: call by call where the files are in memory, and the look where they have to come from the
# disk.
experiment = "mmap-files"
load "figures/style.gp"

# Words "variant:metric", and what is said of them.
curves = "disk:open_us disk:mmap_us disk:touch_us cold:touch_us eager:touch_us"
meanings = "'open()' 'mmap()' 'first byte read' 'the same, from the disk' 'mapped eagerly'"
variant_of(i) = word(curves, i)[1:strstrt(word(curves, i), ":") - 1]
metric_of(i) = word(curves, i)[strstrt(word(curves, i), ":") + 1:*]
there = ""
y_low = 1e9
y_high = 0
x_high = 0
do for [i=1:words(curves)] {
    if (has(variant_of(i))) {
        there = there . " " . i
        stats series(variant_of(i)) using metric_of(i) nooutput
        y_low = STATS_min < y_low ? STATS_min : y_low
        y_high = STATS_max > y_high ? STATS_max : y_high
        stats series(variant_of(i)) using "x" nooutput
        x_high = STATS_max > x_high ? STATS_max : x_high
    }
}

set logscale y
eval y_title("one file, µs (logarithmic)")
set xlabel "files mapped"
set xrange [0:*]
# Five or six numbers: left to itself gnuplot writes 9000 and 10000 into each other.
ten = 10 ** floor(log10(x_high))
set xtics x_high > 5 * ten ? 2 * ten : x_high > 2 * ten ? ten : ten / 5
set yrange [0.6 * y_low:1.6 * y_high]
set format y "%.10g"
set lmargin 9
set rmargin 27
set key at graph 1.02, graph 0.9 left top

nth(k) = int(word(there, k))
curve(k) = series(variant_of(nth(k)))
measure(k) = metric_of(nth(k))
plot for [k=1:words(there)] curve(k) using "x":(low_of(measure(k))):(high_of(measure(k))) \
         with filledcurves fillcolor rgb tints[nth(k)] fillstyle transparent solid 0.6 noborder \
         notitle, \
     for [k=1:words(there)] curve(k) using "x":measure(k) with lines linetype nth(k) \
         title word(meanings, nth(k))
