# The curves of a source beside today's: two halves with one logarithmic y axis, so that shapes and
# factors can be compared. The source's are figures/history/SLUG.tsv, else the rows of the
# experiment's [[then]] table that have an x. Loaded by a script that has set metric, x_text (or two,
# parted by |), y_text and chosen, the variants that are shown.
year = slug[strlen(slug) - 3:*]
history = "figures/history/" . slug . ".tsv"
columns = "curve\\tx\\ty\\tlow\\thigh\\tlevel"
# Rows as history/*.tsv has them, of one curve or of all (""); level is where a curve's name stands.
rows_of(curve) = is_file(history) ? sprintf("awk -F '\\t' -v OFS='\\t' -v curve='%s' " . \
    "'/^#/ { next } /^curve\\t/ { print \"%s\"; next } curve == \"\" || $1 == curve " . \
    "{ print $0, $3 == \"-\" && $4 != \"-\" ? sqrt($4 * $5) : $3 }' %s", curve, columns, history) : \
    sprintf("awk -F '\\t' -v OFS='\\t' 'NR == 1 { print \"%s\" } sub(/.*@/, \"\", $3) " . \
    "{ print \"lighttpd 1.5.0\", $3, $5, \"-\", \"-\", $5 }' %sthen.tsv", columns, folder)
curves_with(test) = system(rows_of("") . " | awk -F '\\t' -v q=\"'\" 'NR > 1 && " . test . \
    " && !seen[$1]++ { print q $1 q }' | paste -s -d ' '")
old(curve) = "< " . rows_of(curve)
olds = curves_with("$6 != \"-\"")
on_zero = ""
do for [name in curves_with("$6 == \"-\"")] { on_zero = on_zero . (on_zero eq "" ? "" : ", ") . name }
ours = ""
do for [name in chosen] { if (has(name)) { ours = ours . " " . name } }
if (ours eq "") { printerr "no run of " . chosen . ": " . missing; exit status 77 }
x_left = x_text
x_right = x_text
bar = strstrt(x_text, "|")
if (bar > 0) {
    x_left = x_text[1:bar - 1]
    x_right = x_text[bar + 1:*]
}
is_log(text) = strstrt(text, "(logarithmic)") > 0
power(x) = 10**floor(log10(x))
step(high) = power(high) * (high < 1.7 * power(high) ? 0.5 : high < 4 * power(high) ? 1 : 2)

shown = ours
load "figures/reference.gp"
stats old("") using "x" nooutput
then_low = STATS_min
then_high = STATS_max
stats old("") using "level" nooutput
y_low = there_low < STATS_min ? there_low : STATS_min
y_high = there_high > STATS_max ? there_high : STATS_max
stats old("") using (given("high") ? column("high") : column("level")) nooutput
y_high = STATS_max > y_high ? STATS_max : y_high
x_low = there_x_low
x_high = there_x_high
do for [name in ours] {
    stats series(name) using "x" nooutput
    x_low = STATS_min < x_low ? STATS_min : x_low
    x_high = STATS_max > x_high ? STATS_max : x_high
    stats series(name) using metric nooutput
    y_low = STATS_min < y_low ? STATS_min : y_low
    y_high = STATS_max > y_high ? STATS_max : y_high
}
y_low = 0.6 * y_low
y_high = 1.6 * y_high

set logscale y
set yrange [y_low:y_high]
load "figures/decades.gp"
logarithmic = 1
label_font = ",12"
label_pixels = 16.0
unset key
our_metric = metric
our_series(name) = folder . name . ".tsv"
our_title(name) = word(titles, place(name))

set multiplot
eval y_title(y_text)
set label 1006 (year eq "2003" ? "2003, Pentium III at 900 MHz" : year . ", two disks of 7200 turns") \
    at graph 0.5, graph 1 center offset 0, 0.4 textcolor rgb faint
if (on_zero ne "") {
    set label 1007 noenhanced "on the zero line: " . on_zero at graph 0.03, graph 0 left offset 0, 0.7 \
        font ",12" textcolor rgb faint
}
set lmargin at screen 0.08
set rmargin at screen 0.36
set xlabel x_left
if (is_log(x_left)) {
    set logscale x 2
    set xrange [0.93 * then_low:1.08 * then_high]
} else {
    set xrange [0:then_high]
    set xtics step(then_high)
}
series(name) = old(name)
title_of(name) = name
is_first(name) = year ne "2003" || strstrt(name, "Linux 2.6") == 1
style_of(name) = is_first(name) ? 2 : 6
metric = "level"
shown = olds
load "figures/labels.gp"
nth(i) = word(olds, i)
line_of(name) = given("y") ? column("y") : NaN
plot for [i=1:words(olds)] old(nth(i)) using "x":(given("low") ? column("low") : NaN): \
         (given("low") ? column("high") : NaN) with filledcurves fillcolor rgb tints[6] \
         fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(olds)] old(nth(i)) using "x":(line_of(0)) with lines dashtype solid \
         linewidth (is_first(nth(i)) ? 2 : 1.5) linecolor rgb colours[style_of(nth(i))]

do for [i=101:100 + words(olds)] { unset label i }
do for [i in "1000 1001 1002 1005 1007"] { unset label int(i) }
set label 1006 "now"
set lmargin at screen 0.57
set rmargin at screen 0.79
y_format = ""
load "figures/decades.gp"
unset logscale x
set xlabel x_right
if (is_log(x_right)) {
    set logscale x 2
    set xrange [0.93 * x_low:1.08 * x_high]
    if (x_high > 64 * x_low) { set xtics x_low, 8 }
} else {
    set xrange [0:x_high]
    set xtics step(x_high)
    if (bar == 0 && x_high > 1.2 * then_high) {
        set arrow 31 from then_high, graph 0 to then_high, graph 1 nohead linewidth 1 linecolor rgb faint
        set label 1007 year at then_high, graph 1 right offset -0.4, -0.8 font ",12" textcolor rgb faint
    }
}
series(name) = our_series(name)
title_of(name) = our_title(name)
style_of(name) = sum [j=1:words(ours)] (word(ours, j) eq name ? j : 0)
metric = our_metric
shown = ours
load "figures/labels.gp"
nth(i) = word(ours, i)
plot for [i=1:words(ours)] series(nth(i)) using "x":(low_of(metric)):(high_of(metric)) \
         with filledcurves fillcolor rgb tints[i] fillstyle transparent solid 0.6 noborder, \
     for [i=1:words(ours)] series(nth(i)) using "x":metric with lines linetype i @thin
unset multiplot
