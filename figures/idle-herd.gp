# What a herd of idle connections costs: the waits of the one client that asks, before, beside and after
# it; and the memory it takes in the servers and in the kernel.
experiment = "idle-herd"
height = 400
load "figures/style.gp"

name = word(variants, 1)
array when[3] = ["before", "during", "after"]
array says[3] = ["before the herd", "beside it", "after it"]
array points_of[3] = [6, 7, 4] # a hollow circle, a filled one, a hollow square
stats series(name) using "x" nooutput
x_high = STATS_max

set xrange [-0.06 * x_high:1.06 * x_high]
set xtics x_high / 2
set format x tick_format(x_high)
set xlabel "idle connections"
set multiplot
set lmargin at screen 0.09
set rmargin at screen 0.47
set logscale y
set format y "%g"
eval y_title("wait, µs: the median; ▲ the slowest 1 %")
set key at graph 0.55, graph 0.98 center top font ",13"
apart(i) = (i - 2) * 0.02 * x_high # three symbols side by side
plot for [i=1:3] series(name) using (column("x") + apart(i)):when[i]."_p99_us" \
         with points pointtype 9 pointsize 0.9 linecolor rgb colours[i] notitle, \
     for [i=1:3] series(name) using (column("x") + apart(i)):when[i]."_us":\
         (low_of(when[i]."_us")):(high_of(when[i]."_us")) \
         with yerrorbars pointtype points_of[i] pointsize 1.2 linecolor rgb colours[i] title says[i]
unset label
set lmargin at screen 0.58
set rmargin at screen 0.97
unset logscale y
set yrange [0:*]
eval y_title("memory that the herd takes, MiB")
set key at graph 0.03, graph 0.98 left top
more(what) = (column("during_" . what) - column("before_" . what)) / 1024
plot series(name) using "x":(more("slab_kib")) with linespoints linetype 1 \
         title "kernel, both ends", \
     series(name) using "x":(more("pss_kib")) with linespoints linetype 2 title "servers"
unset multiplot
