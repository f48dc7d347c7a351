# One bar a variant, over it the repetitions and the interval: our servers first, then their peers,
# then the null server, an outline, as it serves nobody. Loaded by a script that has set x_text, and
# metric or, where more than a column is needed, amount(_), lowest(_) and highest(_).
if (!exists("GPFUN_amount")) {
    amount(_) = column(metric)
    lowest(_) = low_of(metric)
    highest(_) = high_of(metric)
}
is_ours(name) = strstrt("0123456789", name[1:1]) > 0
group(name) = name eq "null-server" ? 3 : is_ours(name) ? 1 : 2
shown = ""
do for [g=1:3] {
    do for [name in variants] {
        if (group(name) == g) { shown = shown . " " . name }
    }
}
rows = words(shown)
nth(i) = word(shown, i)
level(i) = -i - 0.4 * (group(nth(i)) - 1)
none = words(failed_variants)
fallen(i) = level(rows) - i - 0.2 # of one that has failed each time: named, and no bar
height = 120.0 + 28 * (rows + none + 1)
eval open_canvas(height)

array values[rows]
x_high = 0
do for [i=1:rows] {
    stats series(nth(i)) using (amount(0)) nooutput
    values[i] = STATS_max
    stats series(nth(i)) using (highest(0)) nooutput
    x_high = STATS_max > x_high ? STATS_max : x_high
    if (has_there(nth(i))) {
        stats there(nth(i)) using (amount(0)) nooutput
        x_high = STATS_max > x_high ? STATS_max : x_high
        set label 300+i "" at STATS_max, level(i) point pointtype 12 pointsize 1.1 linewidth 2 \
            linecolor rgb ink front
        eval compare("◇")
    }
}

is_last(i) = nth(i) eq "15-slashdot" # of the book's servers
words_ink(i) = is_last(i) ? inks[1] : ink
bar_colour(i) = is_last(i) ? colours[1] : tints[group(nth(i)) == 1 ? 1 : 2]
border_colour(i) = group(nth(i)) == 3 ? faint : bar_colour(i)
do for [i=1:rows] {
    set label 100+i noenhanced title_of(nth(i)) at graph 0, first level(i) right \
        offset character -1, 0 textcolor rgb words_ink(i)
    set label 200+i noenhanced gprintf("%.1s%c", values[i]) at graph 1, first level(i) right \
        font ",13" textcolor rgb words_ink(i)
}
do for [i=1:words(failed_in_part)] {
    do for [k=1:rows] {
        if (nth(k) eq word(failed_in_part, i)) {
            set label 600+i noenhanced "× " . word(failed_in_part_texts, i) at graph 1, first level(k) right \
                offset character 0, -0.8 font ",11" textcolor rgb inks[2] front
        }
    }
}
do for [i=1:none] {
    set label 400+i noenhanced word(failed_titles, i) at graph 0, first fallen(i) right \
        offset character -1, 0 textcolor rgb faint
    set label 500+i noenhanced word(failed_texts, i) at graph 0, first fallen(i) left \
        offset character 1, 0 font ",13" textcolor rgb faint
}
set tmargin 0.8
set lmargin 22
set rmargin 3
set border 1
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set xrange [0:1.15 * x_high]
set yrange [(none ? fallen(none) : level(rows)) - 0.6:-0.4]
set format x tick_format(1.15 * x_high)
set xlabel x_text
unset key
plot for [i=1:rows] series(nth(i)) using (0):(level(i)):(0):(amount(0)): \
         (level(i) - 0.32):(level(i) + 0.32) with boxxyerror \
         fillstyle solid (group(nth(i)) == 3 ? 0.0 : 1.0) border linecolor rgb border_colour(i) \
         linecolor rgb bar_colour(i), \
     for [i=1:rows] points(nth(i)) using (amount(0)):(level(i)) with points pointtype 7 \
         pointsize 0.25 linecolor rgb 0x8a8a92, \
     for [i=1:rows] series(nth(i)) using (amount(0)):(level(i)):(lowest(0)):(highest(0)) \
         with xerrorbars pointtype 0 dashtype solid linecolor rgb ink linewidth 1.5
