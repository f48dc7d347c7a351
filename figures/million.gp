# A million idle connections: the waits of the client that asks while they are there, and before; and the
# memory they take in the servers and in the kernel.
experiment = "million"
height = 400
load "figures/style.gp"

shown = variants
name = word(shown, words(shown)) # the last is the server that the chapter is about
array when[3] = ["before", "during", "after"]
array says[3] = ["before", "beside the herd", "after"]
array points_of[3] = [6, 7, 4] # a hollow circle, a filled one, a hollow square
stats series(name) using "x" nooutput
x_low = STATS_min
x_high = STATS_max

set logscale x
set xrange [x_low / 2:x_high * 2]
set xtics 1, 10
set format x "%.0s%c"
unset mxtics
set xlabel "idle connections"
set multiplot
set lmargin at screen 0.09
set rmargin at screen 0.47
set logscale y
set format y "%g"
eval y_title("wait, ms: the median; paler, the slowest 1 %")
unset key
do for [j=1:3] {
    set label 110 + j says[j] at screen 0.10 + (j - 1) * 0.10 + (j > 2 ? 0.09 : 0), screen 0.965 \
        left offset 0.8, 0 font ",13" point pointtype points_of[j] pointsize 1.2 \
        linecolor rgb colours[j]
}
ms(name) = column(name) / 1e3
apart(i) = 1.15**(i - 2) # three symbols side by side
plot for [i=1:3] series(name) using (column("x") * apart(i)):(ms(when[i]."_p99_us")) \
         with points pointtype points_of[i] pointsize 1.2 linecolor rgb tints[i], \
     for [i=1:3] series(name) using (column("x") * apart(i)):(ms(when[i]."_us")):\
         (low_of(when[i]."_us") / 1e3):(high_of(when[i]."_us") / 1e3) \
         with yerrorbars pointtype points_of[i] pointsize 1.2 linecolor rgb colours[i]
unset label
set lmargin at screen 0.58
set rmargin at screen 0.97
eval y_title("memory that the herd takes, MiB")
more(what) = (column("during_" . what) - column("before_" . what)) / 1024
stats series(name) using (more("slab_kib")) nooutput
set yrange [*:10**(ceil(log10(STATS_max > 1 ? STATS_max : 1)) + 1)] # room for the key
set key at graph 0.03, graph 0.98 left top vertical maxrows 2
plot series(name) using "x":(more("slab_kib")) with linespoints linetype 1 \
         title "kernel, both ends", \
     series(name) using "x":(more("pss_kib")) with linespoints linetype 2 title "servers"
unset multiplot
