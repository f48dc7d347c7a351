# How often in a second the timer interrupts a processor that computes or sleeps, and how often a
# process that computes has to stop for another: each repetition, and the median with its interval.
experiment = "ticks"
height = 330
load "figures/style.gp"

summary = folder . "summary.tsv"
metrics = "busy_ticks idle_ticks busy_stops stops_beside"
meanings = "'timer, while a process computes' 'timer, while it sleeps' " . \
    "'stops of a process, alone' 'stops beside another'"
name = word(variants, 1)
is(_) = stringcolumn("variant") eq name
rate(i) = is(0) && given(word(metrics, i)) ? column(word(metrics, i)) : NaN
low(i) = is(0) ? low_of(word(metrics, i)) : NaN
high(i) = is(0) ? high_of(word(metrics, i)) : NaN

set lmargin 32
set rmargin 8
set tmargin 1
set border 1
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set xrange [0:*]
set yrange [0.4:4.6]
set xlabel "times in a second"
unset key
do for [i=1:4] {
    set label 10+i word(meanings, i) at graph 0, first 5-i right offset character -1.5, 0 \
        textcolor rgb ink
}
plot for [i=1:4] summary using (rate(i)):(5 - i):(low(i)):(high(i)) with xerrorbars \
         linetype (i < 3 ? 1 : 2) linewidth 2 pointsize 1.1, \
     for [i=1:4] summary using (rate(i)):(5 - i):(is(0) ? sprintf("%.0f", rate(i)) : "") \
         with labels offset character 0, 0.9 font ",13" textcolor rgb ink
