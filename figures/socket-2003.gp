# The curves of 2003, redrawn from numbers read off the talk's figure and turned from cycles into
# microseconds, beside today's, on one scale. Third figure of experiment fd-alloc.
experiment = "fd-alloc"
width = 900
height = 480
load "figures/style.gp"

if (!has("socket")) { printerr "no run of socket(): " . missing; exit status 77 }
then = "figures/history/socket-2003.tsv"
cycles_per_us = 900.0
old(name) = stringcolumn("curve") eq name ? column("cycles") / cycles_per_us : NaN
others = "'Linux 2.4' 'FreeBSD 5.1' 'NetBSD 1.6.1' 'OpenBSD 3.4'"
grey = 0x8a8a92

set yrange [0:15]
set xrange [0:10000]
set xtics 5000
set xlabel "sockets open"
unset key

set multiplot
eval y_title("socket(), µs")
set label 1003 "2003, Pentium III at 900 MHz" at graph 0.5, graph 1 center offset 0, 0.4 \
    textcolor rgb faint
set lmargin at screen 0.08
set rmargin at screen 0.43
do for [i=51:55] { set label i "" font ",12" }
set label 51 "NetBSD 1.6.1" at 10200, 13.3
set label 52 "OpenBSD 3.4" at 10200, 11.1
set label 53 "Linux 2.4" at 10200, 8.9
set label 54 "Linux 2.6" at 10200, 6.4 textcolor rgb inks[2]
set label 55 "FreeBSD 5.1" at 10200, 1.7
plot for [name in others] then using "open":(old(name)) with lines linewidth 1.5 dashtype solid \
         linecolor rgb grey, \
     then using "open":(old("Linux 2.6")) with lines linetype 2

do for [i=51:55] { unset label i }
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
shown = has("socket-hole") ? "socket socket-hole" : "socket"
meanings = "'socket()' 'a hole low'"
nth(i) = word(shown, i)
array last[2]
do for [i=1:words(shown)] {
    stats series(nth(i)) using (given("call_us") ? last_y = column("call_us") : NaN) \
        nooutput
    last[i] = last_y
}
# The two are close: the higher one is named above its end, the lower one below.
upper = words(shown) == 2 && last[2] > last[1] ? 2 : 1
do for [i=1:words(shown)] {
    set label 60+i word(meanings, i) at graph 1, first last[i] left \
        offset character 0.8, (i == upper ? 0.4 : -0.4) font ",12" textcolor rgb inks[i]
}
plot for [i=1:words(shown)] series(nth(i)) using "x":(low_of("call_us")):(high_of("call_us")) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":"call_us" with lines linetype i
unset multiplot
