# The curves of 2003, redrawn from numbers read off the talk's figures, beside today's, on one
# logarithmic scale: shapes and factors can be compared. Third figure of experiment fork-latency.
experiment = "fork-latency"
width = 900
height = 480
load "figures/style.gp"

then = "figures/history/fork-2003.tsv"
others = "'Linux 2.4' 'Linux 2.4 (second curve)' 'FreeBSD 5.1' 'FreeBSD 5.1, static' " . \
    "'NetBSD 1.6.1' 'OpenBSD 3.4'"
old(name) = stringcolumn("curve") eq name ? column("us") : NaN

y_low = 30
y_high = 2500
set logscale y
set yrange [y_low:y_high]
set ytics (50, 100, 200, 500, 1000, 2000)
set xrange [0:4000]
set xtics 1000
set xlabel "processes alive"
unset key

set multiplot
eval y_title("fork() to the child's first byte, µs (logarithmic)")
set label 1003 "2003, Pentium III at 900 MHz" at graph 0.5, graph 1 center offset 0, 0.4 \
    textcolor rgb faint
set lmargin at screen 0.08
set rmargin at screen 0.45
# Beside the end of its curve; the four lowest are a little apart from theirs, to be legible.
do for [i=51:58] { set label i "" font ",12" }
set label 51 "OpenBSD 3.4" at 1600, 1480
set label 52 "Linux 2.4, second curve" at 4080, 1250
set label 53 "NetBSD 1.6.1" at 850, 960
set label 54 "FreeBSD 5.1" at 1980, 500
set label 55 "Linux 2.6" at 4080, 385 textcolor rgb inks[1]
set label 56 "Linux 2.4" at 4080, 308
set label 57 "FreeBSD 5.1, static" at 4080, 246
set label 58 "Linux 2.6, static" at 4080, 196 textcolor rgb inks[2]
plot for [name in others] then using "alive":(old(name)) \
         with lines linewidth 1.5 dashtype solid linecolor rgb 0x8a8a92, \
     then using "alive":(old("Linux 2.6")) with lines linetype 1, \
     then using "alive":(old("Linux 2.6, static")) with lines linetype 2

do for [i=51:58] { unset label i }
unset label 1000
unset label 1001
unset label 1002
set label 1003 "now"
set lmargin at screen 0.63
set rmargin at screen 0.83
set ytics format ""
metric = "fork_us"
logarithmic = 1
label_font = ",12"
shown = variants
load "figures/labels.gp"
nth(i) = word(shown, i)
plot for [i=1:words(shown)] series(nth(i)) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(shown)] series(nth(i)) using "x":metric with lines linetype i
unset multiplot
