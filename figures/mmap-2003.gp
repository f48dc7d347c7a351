# The curves of 2003, redrawn from numbers read off the talk's figures and turned from cycles into
# microseconds, beside today's, on one logarithmic scale. Second figure of experiment mmap-pages.
experiment = "mmap-pages"
width = 900
height = 480
load "figures/style.gp"

then = "figures/history/mmap-2003.tsv"
cycles_per_us = 900.0
old(name, what) = stringcolumn("curve") eq name && stringcolumn("call") eq what ? \
    column("cycles") / cycles_per_us : NaN
mapping = "'Linux 2.4' 'FreeBSD 5.1' 'NetBSD 1.6.1' 'OpenBSD 3.4'"
looking = "'Linux 2.4' 'FreeBSD 5.1' 'NetBSD 1.6.1'"
grey = 0x8a8a92

set logscale y
set yrange [0.1:3000]
set ytics (0.1, 1, 10, 100, 1000)
set xrange [0:10000]
set xtics 5000
set xlabel "mappings there"
unset key

set multiplot
eval y_title("one page, µs (logarithmic)")
set label 1003 "2003, Pentium III at 900 MHz" at graph 0.5, graph 1 center offset 0, 0.4 \
    textcolor rgb faint
set lmargin at screen 0.08
set rmargin at screen 0.43
do for [i=51:58] { set label i "" font ",12" }
set label 51 "mmap(): FreeBSD 5.1, NetBSD," at 10200, 2100
set label 52 "Linux 2.4" at 10200, 1150
set label 53 "first byte: NetBSD 1.6.1" at 10200, 155
set label 54 "mmap(): OpenBSD 3.4" at 10200, 44
set label 55 "first byte: Linux 2.4" at 10200, 3.8
set label 56 "first byte: Linux 2.6" at 10200, 1.95 textcolor rgb inks[2]
set label 57 "first byte: FreeBSD 5.1" at 10200, 0.44
set label 58 "mmap() of Linux 2.6: too low to be read off" at 250, 0.16 textcolor rgb faint
plot for [name in mapping] then using "mapped":(old(name, "mmap")) with lines linewidth 1.5 \
         dashtype solid linecolor rgb grey, \
     for [name in looking] then using "mapped":(old(name, "touch")) with lines linewidth 1.5 \
         dashtype (10, 4) linecolor rgb grey, \
     then using "mapped":(old("Linux 2.6", "touch")) with lines linetype 2

do for [i=51:58] { unset label i }
unset label 1000
unset label 1001
unset label 1002
set label 1003 "now"
set lmargin at screen 0.65
set rmargin at screen 0.87
set ytics format ""
set xrange [0:*]
set xtics autofreq
set xtics 10000
name = word(variants, 1)
metrics = "mmap_us touch_us"
meanings = "'mmap()' 'first byte'"
array last[2]
do for [i=1:2] {
    stats series(name) using (given(word(metrics, i)) ? last_y = column(word(metrics, i)) : NaN) \
        nooutput
    last[i] = last_y
}
# The two are close on this scale: the higher one is named above its end, the lower one below.
upper = last[1] > last[2] ? 1 : 2
do for [i=1:2] {
    set label 60+i word(meanings, i) at graph 1, first last[i] left \
        offset character 0.8, (i == upper ? 0.3 : -0.3) font ",12" textcolor rgb inks[i]
}
plot for [i=1:2] series(name) using "x":(low_of(word(metrics, i))):(high_of(word(metrics, i))) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:2] series(name) using "x":word(metrics, i) with lines linetype i
unset multiplot
