# Do three load generators see the same server? The rate hammer reports as a multiple of what wrk
# and h2load report, with the interval of that ratio. The band is the 10 % within which they have to
# agree where the server is the limit.
experiment = "hammer-crosscheck"
height = 400
load "figures/style.gp"

numbers = folder . "numbers.tsv"
summary = folder . "summary.tsv"

# A number of the experiment, <mode>-hammer-<tool>, for each row; 0 is a gap.
modes = "close keep"
mode_titles = "'a connection a request' 'keep-alive'"
tools = "wrk h2load"
key(m, t) = word(modes, m) . "-hammer-" . word(tools, t)
row(m, t) = 7 - 3 * m - t + 2
row_of(k) = sum [m=1:2] (sum [t=1:2] (k eq key(m, t) ? row(m, t) : 0))
height_of(k) = row_of(k) > 0 ? row_of(k) : NaN

pairs = 0
stats numbers using (row_of(stringcolumn("key")) > 0 ? pairs = pairs + 1 : 0) nooutput
if (pairs == 0) { printerr "nothing to compare hammer with: " . missing; exit status 77 }
left = 0.8
right = 1.2
is_row(_) = row_of(stringcolumn("key")) > 0
stats numbers using (is_row(0) && low_end(0) < left ? left = low_end(0) : 0) nooutput
stats numbers using (is_row(0) && high_end(0) > right ? right = high_end(0) : 0) nooutput

# Beside each row stand the two rates; a generator at its own limit says nothing about the server.
array rates[4]
limits = 0
is(name) = stringcolumn("variant") eq name
do for [m=1:2] {
    do for [t=1:2] {
        a = word(modes, m) . "-hammer"
        b = word(modes, m) . "-" . word(tools, t)
        rate_a = NaN; rate_b = NaN; limit_a = 0; limit_b = 0
        stats summary using (is(a) ? rate_a = column("requests_per_s") : 0) nooutput
        stats summary using (is(a) ? limit_a = column("client_bound") : 0) nooutput
        stats summary using (is(b) ? rate_b = column("requests_per_s") : 0) nooutput
        stats summary using (is(b) ? limit_b = column("client_bound") : 0) nooutput
        limits = limits + (limit_a > 0.5) + (limit_b > 0.5)
        rates[2*m+t-2] = !has(a) || !has(b) ? "not measured here" : sprintf("%.1fk%s and %.1fk%s", \
            rate_a / 1000, limit_a > 0.5 ? "*" : "", rate_b / 1000, limit_b > 0.5 ? "*" : "")
    }
}

set lmargin 25
set rmargin 27
set tmargin 1
set border 1
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set xrange [left - 0.03:right + 0.03]
set yrange [0.3:6.7]
set format x "%g"
set xlabel "hammer's requests per second, as a multiple of the other's"
unset key
set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead linewidth 1 linecolor rgb faint
set object 1 rectangle from first 0.9, graph 0 to first 1.1, graph 1 behind \
    fillcolor rgb 0xe9edf5 fillstyle solid noborder

do for [m=1:2] {
    mode_title = word(mode_titles, m)
    set label 10*m mode_title at graph 0, first row(m, 0) right offset character -1.5, 0 \
        textcolor rgb faint
    do for [t=1:2] {
        tool_title = "hammer and " . word(tools, t)
        set label 10*m+t tool_title at graph 0, first row(m, t) right offset character -1.5, 0 \
            textcolor rgb inks[1]
        set label 100+10*m+t rates[2*m+t-2] at graph 1, first row(m, t) left \
            offset character 1.5, 0 font ",13" textcolor rgb ink
    }
}
set label 30 "requests per second" at graph 1, first row(1, 0) left offset character 1.5, 0 \
    font ",13" textcolor rgb faint
note = limits > 0 ? "* the load generator was at its limit" : ""
set label 31 note at screen 0, screen 0 left \
    offset character 1, 0.9 font ",11" textcolor rgb faint

plot numbers using "value":(height_of(stringcolumn("key"))):(low_end(0)):(high_end(0)) \
         with xerrorbars linetype 1 linewidth 2 pointsize 1.1
