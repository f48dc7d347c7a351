# What vmstat's columns say while a server works little, and while it works as much as it can: switches
# and interrupts of the whole machine, in a second.
experiment = "switches"
load "figures/style.gp"

summary = folder . "summary.tsv"
array metrics[4] = ["light_switches", "busy_switches", "light_interrupts", "busy_interrupts"]
array says[4] = ["switches, light load", "switches, busy", "interrupts, light load", "interrupts, busy"]
array points_of[4] = [6, 7, 4, 5] # hollow and filled circles, hollow and filled squares
array of_colour[4] = [1, 1, 2, 2]

set logscale y
set xrange [-0.5:*]
set xtics nomirror rotate by 20 right
set format y "%.0s%c"
eval y_title("a second, whole machine")
set offsets 0, 0.5, 0, 0
set bmargin (remarks ne "" ? 8.5 : 7.5)
set key at graph 1.04, graph 1 left top Left reverse font ",13"
set rmargin 26
plot for [i=1:4] summary using 0:metrics[i]:xticlabels(2) with points pointtype points_of[i] \
    pointsize 1.4 linecolor rgb colours[of_colour[i]] title says[i]
