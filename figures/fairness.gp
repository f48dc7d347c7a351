# What each of n equal processes got of one processor: the least, the most, and Jain's index over
# all of them, when there was time for many turns; and the index when there was time for few. 1 is
# an equal part.
experiment = "fairness"
load "figures/style.gp"

if (!has("long") || !has("brief")) { printerr "not all was measured: " . missing; exit status 77 }
curves = "long:most long:jain long:least brief:jain"
meanings = '"the most one got" "Jain''s index" "the least one got" "the index, few turns"'
variant(curve) = curve[1:strstrt(curve, ":")-1]
measure(curve) = curve[strstrt(curve, ":")+1:*]
nth(i) = variant(word(curves, i))
what(i) = measure(word(curves, i))
y_high = 1.2
do for [i=1:4] {
    stats points(nth(i)) using what(i) nooutput
    y_high = STATS_max > y_high ? STATS_max : y_high
}

eval y_title("processor time, as a multiple of an equal part")
set xlabel "processes that compute (logarithmic)"
set logscale x 2
set xrange [*:*]
set yrange [0:y_high * 1.05]
set rmargin 27
set key at graph 1.02, graph 0.9 left top

plot for [i=1:4] points(nth(i)) using "x":what(i) with points pointtype 7 pointsize 0.25 \
         linecolor rgb tints[i] notitle, \
     for [i=1:4] series(nth(i)) using "x":(low_of(what(i))):(high_of(what(i))) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder notitle, \
     for [i=1:4] series(nth(i)) using "x":what(i) with linespoints linetype i pointsize 0.7 \
         title word(meanings, i)
