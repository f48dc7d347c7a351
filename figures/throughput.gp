# What a server can do: requests a second, and requests for each second of CPU time the server
# itself spends, against the number of connections that ask without pause.
experiment = "throughput"
width = 960
height = 450
load "figures/style.gp"

# Variants are called <server>-close and <server>-keep.
ends(name, end) = strlen(name) > strlen(end) && name[strlen(name)-strlen(end)+1:*] eq end
without(name, end) = ends(name, end) ? name[1:strlen(name)-strlen(end)] : name
server(name) = without(without(name, "-close"), "-keep")
is_in(list, name) = strstrt(" " . list . " ", " " . name . " ") > 0
servers = ""
closing = ""
keeping = ""
do for [name in variants] {
    if (!is_in(servers, server(name))) { servers = servers . " " . server(name) }
    if (ends(name, "-close")) { closing = closing . " " . name }
    if (!ends(name, "-close")) { keeping = keeping . " " . name }
}
style_of(name) = sum [i=1:words(servers)] (word(servers, i) eq server(name) ? i : 0)

# Colour and point tell the server; broken lines open a connection for each request. A hollow point:
# the load generator was at its limit, the server could perhaps do more.
shown = variants
bound = 0
do for [name in shown] {
    stats series(name) using "bound" nooutput
    bound = STATS_max > bound ? STATS_max : bound
}
array metrics[2] = ["requests_per_s", "requests_per_cpu_s"]
array headings[2] = ["requests per second", "requests per second of the server's CPU time"]
array lefts[2] = [0.075, 0.475]
array rights[2] = [0.39, 0.79]

set logscale x 2
set xrange [0.8:*]
set xlabel "connections"
unset key
if (bound > 0) {
    set label 30 "hollow: the load generator was at its limit" at screen 0, screen 0 left \
        offset character 1, 0.9 font ",11" textcolor rgb faint
}

set multiplot
do for [panel=1:2] {
    metric = metrics[panel]
    y_low = 0
    y_high = 0
    set autoscale y # stats leaves out what lies outside of the range
    do for [name in shown] {
        stats series(name) using (high_of(metric)) nooutput
        y_high = STATS_max * 1.08 > y_high ? STATS_max * 1.08 : y_high
    }
    set yrange [y_low:y_high]
    set format y tick_format(y_high)
    set lmargin at screen lefts[panel]
    set rmargin at screen rights[panel]
    if (panel == 2) { unset label; load "figures/labels.gp" }
    eval y_title(headings[panel])
    plot for [name in shown] series(name) using "x":(low_of(metric)):(high_of(metric)) \
             with filledcurves fillcolor rgb tints[style_of(name)] \
             fillstyle transparent solid 0.6 noborder, \
         for [name in keeping] series(name) using "x":metric \
             with linespoints linetype style_of(name) dashtype solid, \
         for [name in closing] series(name) using "x":metric \
             with linespoints linetype style_of(name) dashtype (8, 4), \
         for [name in shown] series(name) using "x":(column("bound") > 0 ? column(metric) : NaN) \
             with points pointtype 7 pointsize 0.45 linecolor rgb 0xffffff
}
unset multiplot
