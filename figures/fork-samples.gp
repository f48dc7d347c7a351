# Every single fork of one run: what the medians of the other figures are made of. Fourth figure of
# experiment fork-latency.
experiment = "fork-latency"
load "figures/style.gp"

eval y_title("fork() to the child's first byte, µs (logarithmic)")
set xlabel "processes alive"
set logscale y
unset key

stats folder . "samples-" . word(variants, 1) . ".tsv" using "x" nooutput
length = STATS_max / 800.0
set xrange [0:STATS_max * 1.01]

# A dot is a line of a pixel: one path for all of them, a quarter of the size of so many points.
sample(name) = folder . "samples-" . name . ".tsv"
name = word(variants, 1)
set label 1003 "each dot is one fork (" . title_of(name) . ")" at graph 1, graph 1 right \
    offset 0, 0.5 font ",13" textcolor rgb inks[1]
plot sample(name) using "x":"fork_us":(length):(0) with vectors nohead linetype 1 linewidth 1.6
