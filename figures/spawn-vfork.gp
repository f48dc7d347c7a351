# fork beside vfork, of a parent that holds no more than itself: with three ways to link, now and as
# the talk had it. Second figure of experiment spawn.
experiment = "spawn"
height = 400
load "figures/style.gp"

summary = folder . "summary.tsv"
then = "figures/history/vfork-2003.tsv"

# From the top: a row a way to link, a gap, two rows of 2003. The variants are called fork, vfork and
# then -static or -diet.
names = "fork fork-static fork-diet"
row_titles = "'glibc, dynamic' 'glibc, static' 'dietlibc, static'"
then_rows = 2
rows = words(names) + then_rows + 0.4
row_of(name) = rows + 1 - (sum [i=1:words(names)] (word(names, i) eq name ? i : 0))
is_row(name) = strstrt(" " . names . " ", " " . name . " ") > 0
fork_row(name) = is_row(name) ? row_of(name) : NaN
vfork_row(name) = name[1:1] eq "v" && is_row(name[2:*]) ? row_of(name[2:*]) : NaN
shown_rows = 0
do for [name in names] { shown_rows = shown_rows + has(name) * has("v" . name) }
if (shown_rows == 0) { printerr missing; exit status 77 }

metric = "total_us"
name(_) = stringcolumn("variant")
either(_) = is_row(name(0)) || name(0)[1:1] eq "v" && is_row(name(0)[2:*])
low = 20
high = 350 # those of 2003 have room
stats summary using (either(0) && low_of(metric) < low ? low = low_of(metric) : 0) nooutput
stats summary using (either(0) && high_of(metric) > high ? high = high_of(metric) : 0) nooutput
left = low / 2.0

set lmargin 25
set rmargin 5
set tmargin 3
set border 1
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set logscale x
set xrange [left:high * 1.5]
set xtics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000)
set yrange [0.3:rows + 0.7]
set xlabel "call to the end of the child, which does nothing, µs (logarithmic)"
unset key
set label 30 "● fork" at graph 0.5, graph 1 left offset 0, 0.9 textcolor rgb inks[1]
set label 31 "▲ vfork" at graph 0.65, graph 1 left offset 0, 0.9 textcolor rgb inks[2]
set label 32 "hollow: 2003" at graph 0.8, graph 1 left offset 0, 0.9 textcolor rgb faint

do for [i=1:words(names)] {
    name = word(names, i)
    set label 10+i word(row_titles, i) at graph 0, first row_of(name) right \
        offset character -1.5, 0 textcolor rgb ink
    if (!has(name) || !has("v" . name)) {
        set label 20+i "not measured here" at graph 0.02, first row_of(name) left \
            font ",13" textcolor rgb faint
    }
}

plot summary using metric:(fork_row(name(0))):(low_of(metric)):(high_of(metric)) \
         with xerrorbars linetype 1 linewidth 2 pointsize 1.1, \
     summary using metric:(vfork_row(name(0))):(low_of(metric)):(high_of(metric)) \
         with xerrorbars linetype 2 dashtype solid linewidth 2 pointsize 1.3, \
     then using "fork_us":(then_rows - $0) with points linetype 1 pointtype 6 linewidth 2 \
         pointsize 1.1, \
     then using "vfork_us":(then_rows - $0) with points linetype 2 pointtype 8 linewidth 2 \
         pointsize 1.3, \
     then using (left * 1.001):(then_rows - $0):(sprintf("%s, 2003", stringcolumn("library"))) \
         with labels right offset character -1.5, 0 textcolor rgb faint
