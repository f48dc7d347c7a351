# The curves of 2003, redrawn from numbers read off the talk's figure and turned from cycles into
# microseconds, beside today's, on one logarithmic scale: the figure of 2003 ended before the knee.
# Second figure of experiment port-bind.
experiment = "port-bind"
width = 900
height = 480
load "figures/style.gp"

if (!has("ipv4")) { printerr "no run of bind(): " . missing; exit status 77 }
then = "figures/history/bind-2003.tsv"
cycles_per_us = 900.0
old(name) = stringcolumn("curve") eq name ? column("cycles") / cycles_per_us : NaN
others = "'NetBSD 1.6.1' 'OpenBSD 3.4'"
grey = 0x8a8a92

set logscale y
set yrange [0.3:10000]
set ytics (1, 10, 100, 1000, 10000)
set xrange [0:10000]
set xtics 5000
set xlabel "ports in use"
unset key

set multiplot
eval y_title("bind() to port 0, µs (logarithmic)")
set label 1003 "2003, Pentium III at 900 MHz" at graph 0.5, graph 1 center offset 0, 0.4 \
    textcolor rgb faint
set lmargin at screen 0.08
set rmargin at screen 0.35
do for [i=51:53] { set label i "" font ",12" }
set label 51 "OpenBSD 3.4" at 10200, 2200
set label 52 "NetBSD 1.6.1" at 10200, 1200
set label 53 "Linux, FreeBSD 5.1:" at 250, 1.2 textcolor rgb faint
set label 54 "too low to be read off" at 250, 0.6 font ",12" textcolor rgb faint
plot for [name in others] then using "in_use":(old(name)) with lines linewidth 1.5 \
         dashtype solid linecolor rgb grey

do for [i=51:54] { unset label i }
unset label 1000
unset label 1001
unset label 1002
set label 1003 "now"
set lmargin at screen 0.49
set rmargin at screen 0.92
set ytics format ""
set xrange [0:30000]
set xtics 10000
set arrow 31 from 10000, graph 0 to 10000, graph 1 nohead linewidth 1 linecolor rgb faint
set label 32 "the figure of 2003" at 9600, graph 0.95 right font ",12" textcolor rgb faint
set label 33 "ended here" at 9600, graph 0.88 right font ",12" textcolor rgb faint
shown = has("ipv6") ? "ipv4 ipv6" : "ipv4"
nth(i) = word(shown, i)
do for [i=1:words(shown)] {
    stats series(nth(i)) using (given("bind_us") ? last_y = column("bind_us") : NaN) nooutput
    set label 60+i word("IPv4 IPv6", i) at graph 1, first last_y left \
        offset character -0.6, (i == 1 ? -0.5 : 0.5) font ",12" textcolor rgb inks[i]
}
plot for [i=1:words(shown)] series(nth(i)) using "x":(low_of("bind_us")):(high_of("bind_us")) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":"bind_us" with lines linetype i
unset multiplot
