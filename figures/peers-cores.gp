# With a worker for each processor: what 15-slashdot does with a second of processor time, as a multiple
# of what each of its peers does with one. A block for each kind of load; ratios and their intervals.
experiment = "peers-cores"
load "figures/style.gp"

numbers = folder . "numbers.tsv"
kinds = "small closed 100k 10m"
kind_names = "'1000 bytes, kept' '1000 bytes, closed' '100 KB, kept' '10 MB, kept'"
peers = "nginx lighttpd h2o apache-event"
count = words(peers)

# Only blocks of which there is a number: a short profile leaves out the large files.
shown = ""
do for [k=1:words(kinds)] {
    found = 0
    do for [name in peers] {
        stats numbers using (stringcolumn("key") eq word(kinds, k) . "-over-" . name && given("value") ? \
            found = 1 : 0) nooutput
    }
    if (found) { shown = shown . " " . k }
}
blocks = words(shown)
kind(b) = int(word(shown, b))
level(b, p) = -(b - 1) * (count + 1.0) - p
height = 150.0 + 24 * blocks * (count + 1.0)
eval open_canvas(height)

is(b, p) = stringcolumn("key") eq word(kinds, kind(b)) . "-over-" . word(peers, p) && given("value")
ratio(b, p) = is(b, p) ? column("value") : NaN
x_low = 1
x_high = 1
do for [b=1:blocks] {
    do for [p=1:count] {
        stats numbers using (is(b, p) && low_end(0) < x_low ? x_low = low_end(0) : 0) nooutput
        stats numbers using (is(b, p) && high_end(0) > x_high ? x_high = high_end(0) : 0) nooutput
        set label 10 * b + p noenhanced title_of(word(peers, p)) at graph 0, first level(b, p) right \
            offset character -1, 0
    }
    set label 10 * b noenhanced word(kind_names, kind(b)) at graph 0, first level(b, 1) right \
        offset character -14, 0 font ",13" textcolor rgb inks[1]
}

set tmargin 0.8
set lmargin 31
set rmargin 3
set border 1
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set logscale x
# Room at the right for the words behind an interval.
set xrange [0.9 * x_low:x_high * 10**(0.35 * log10(1.6 * x_high / x_low))]
set yrange [level(blocks, count) - 0.8:-0.2]
set xtics (0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10, 15, 20)
set xlabel "requests per CPU second: 15-slashdot, as a multiple of the peer"
set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead linecolor rgb ink linewidth 1.5 back
unset key
plot for [b=1:blocks] for [p=1:count] numbers using (ratio(b, p)):(level(b, p)): \
         (low_end(0)):(high_end(0)) with xerrorbars linetype 1 dashtype solid pointsize 0.7, \
     for [b=1:blocks] for [p=1:count] numbers using (is(b, p) ? high_end(0) : NaN):(level(b, p)): \
         (sprintf("%.2f", column("value"))) with labels left offset character 0.8, 0 font ",12" \
         textcolor rgb inks[1]
