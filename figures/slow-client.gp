# How long ordinary clients wait for a reply, without and with one slow client beside them: one
# panel a server, the share of requests that were answered within a time.
experiment = "slow-client"
load "figures/style.gp"

# Variants are called <server> and <server>-slow.
is_slow(name) = strlen(name) > 5 && name[strlen(name)-4:*] eq "-slow"
servers = ""
do for [name in variants] {
    if (!is_slow(name)) { servers = servers . " " . name }
}
panels = words(servers)
panel_height = panels > 3 ? 115 : 150
height = panels * panel_height + 165.0
eval open_canvas(height)

distribution(name) = folder . "distribution-" . name . ".tsv"
first_ms = 1e9
last_ms = 0
do for [name in variants] {
    stats distribution(name) using "ms" nooutput
    first_ms = STATS_min < first_ms ? STATS_min : first_ms
    last_ms = STATS_max > last_ms ? STATS_max : last_ms
}

set logscale x
set xrange [10**floor(log10(first_ms)):10**ceil(log10(last_ms))]
set yrange [0:100]
set ytics 50
set grid xtics ytics linetype 1 linecolor rgb 0xdcdce2 linewidth 1 dashtype solid
set format x ""
set lmargin at screen 0.09
set rmargin at screen 0.97
unset key
key_y = 1 - 22.0 / height
set arrow 1 from screen 0.56, screen key_y to screen 0.60, screen key_y nohead linetype 1
set label 21 "alone" at screen 0.61, screen key_y textcolor rgb inks[1]
set arrow 2 from screen 0.70, screen key_y to screen 0.74, screen key_y nohead linetype 2 \
    dashtype solid linewidth 3.5
set label 22 "beside one slow client" at screen 0.75, screen key_y textcolor rgb inks[2]
eval y_title("requests answered within the time, %")
set label 1002 offset character -6, 2.4

set multiplot
do for [i=1:panels] {
    name = word(servers, i)
    if (i == 2) { unset label; unset arrow }
    set tmargin at screen 1 - (72.0 + (i - 1) * panel_height) / height
    set bmargin at screen 1 - (i * panel_height + 25.0) / height
    set label 1003 title_of(name) at graph 0, graph 1 left offset 0.2, 0.6 textcolor rgb ink
    if (i == panels) {
        set format x "%g"
        set xlabel "from when a request was due until its last byte, ms"
    }
    plot distribution(name . "-slow") using "ms":(100 * column("within")) with lines \
             linetype 2 dashtype solid linewidth 3.5, \
         distribution(name) using "ms":(100 * column("within")) with lines linetype 1
}
unset multiplot
