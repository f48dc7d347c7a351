# What the machines of a class have measured: a dot for each, a bar at their median.
experiment = slug
load "figures/style.gp"

eval open_canvas(130 + 26 * places)
set lmargin widest + 7
set rmargin 4
set title question noenhanced textcolor rgb ink
set yrange [0.4:places + 0.6]
set ytics noenhanced scale 0
set grid xtics ytics linetype 1 linecolor rgb 0xdcdce2 linewidth 1 dashtype solid
if (least > 0) { set logscale x }
if (least == most && least > 0) { set xrange [least / 2.0:2.0 * most] }
set format x "%g"
set xlabel axis noenhanced
unset key
plot folder . "medians.tsv" using "value":"place":ytic(stringcolumn("title")) with dots, \
     folder . "medians.tsv" using "value":(column("place") - 0.3):(0):(0.6) with vectors nohead \
         linetype 1 linewidth 4 linecolor rgb tints[1], \
     folder . "machines.tsv" using "value":"place" with points \
         pointtype 7 pointsize 0.6 linecolor rgb colours[1]
