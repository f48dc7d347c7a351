# How many times as fast fork() is when the program is linked statically: here, with the interval
# and with the noise floor of two identical runs, and in 2003. Second figure of experiment
# fork-latency.
experiment = "fork-latency"
height = 430
load "figures/style.gp"

numbers = folder . "numbers.tsv"
# Of each system the row of its static curve comes first.
then = "< awk -F '\t' -v OFS='\t' 'BEGIN { print \"system\", \"dynamic_us\", \"static_us\" } " . \
    "$2 == 0 && sub(/, dynamic/, \"\", $1) { print $1, $3, of } { of = $3 }' " . \
    "figures/history/linking-2003.tsv"

# From the top: the noise floor, a row a link mode, a gap, two rows of 2003. The numbers of the
# experiment are called <variant>-gain.
names = "aa static static-pie musl diet"
then_rows = 2
rows = words(names) + then_rows + 0.4
is_row(name) = strstrt(" " . names . " ", " " . name . " ") > 0
row_of(name) = rows + 1 - (sum [i=1:words(names)] (word(names, i) eq name ? i : 0))
gain_row(key) = strlen(key) > 5 && key[strlen(key)-4:*] eq "-gain" && \
    is_row(key[1:strlen(key)-5]) ? row_of(key[1:strlen(key)-5]) : NaN

gains = 0
stats numbers using (strstrt(stringcolumn("key"), "-gain") > 0 ? gains = gains + 1 : 0) nooutput
if (gains == 0) { printerr "nothing to compare: " . missing; exit status 77 }
stats numbers using (gain_row(stringcolumn("key"))):(high_end(0)) nooutput
right = STATS_max_y > 2 ? STATS_max_y : 2

set lmargin 25
set rmargin 3
set tmargin 1
set border 1
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set xrange [0.9:right * 1.3]
set yrange [0.3:rows + 0.7]
set xlabel "times as fast as glibc, dynamic"
unset key

do for [i=1:words(names)] {
    name = word(names, i)
    row_title = name eq "aa" ? "glibc, dynamic, again" : has(name) ? title_of(name) : name
    set label 10+i row_title at graph 0, first row_of(name) right offset character -1.5, 0 \
        textcolor rgb (name eq "aa" ? faint : inks[1])
    if (name ne "aa" && !has(name)) {
        set label 20+i "not measured here" at graph 0.2, first row_of(name) left \
            font ",13" textcolor rgb faint
    }
}

plot numbers using "value":(stringcolumn("key") eq "aa-gain" ? 0.3 : NaN): \
         (low_end(0)):(high_end(0)):(0.3):(rows + 0.7) \
         with boxxyerror fillstyle solid noborder linecolor rgb 0xd9d9de, \
     numbers using "value":(gain_row(stringcolumn("key"))):(low_end(0)):(high_end(0)) \
         with xerrorbars linetype 1 linewidth 2 pointsize 1.1, \
     numbers using (high_end(0)):(gain_row(stringcolumn("key"))): \
         (interval(0)) \
         with labels left offset character 1.2, 0 font ",13" textcolor rgb inks[1], \
     then using (column("dynamic_us") / column("static_us")):(then_rows - $0) \
         with points linetype 2 pointtype 6 linewidth 2 pointsize 1.1, \
     then using (column("dynamic_us") / column("static_us")):(then_rows - $0): \
         (sprintf("%.2f (%.0f µs to %.0f µs)", column("dynamic_us") / column("static_us"), \
         column("dynamic_us"), column("static_us"))) \
         with labels left offset character 1.2, 0 font ",13" textcolor rgb inks[2], \
     then using (0.9):(then_rows - $0):(sprintf("%s, 2003", stringcolumn("system"))) \
         with labels right offset character -1.5, 0 textcolor rgb inks[2]
