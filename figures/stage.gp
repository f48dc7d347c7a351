# A plot for a slide, from the line of figures/stage.tsv that the slug names: stage-NAME-COUNT has the
# first COUNT series of NAME; with 0 there are the axes, for a guess. No footer: the slide's foot names the run.
name = slug[7:strlen(slug) - 2]
count = int(slug[strlen(slug):*])
# The fields of the line, and of each word of its series the table and the column.
eval system("awk -v line='" . name . "' -f figures/stage.awk figures/stage.tsv")
width = 1152
height = 520
load "figures/style.gp"

set terminal svg size 1152, 520 dynamic enhanced rounded font 'DejaVu Sans,24' \
    background 'white' name id
set output out
unset label 1000
unset label 1001
set linetype 1 linewidth 5
set linetype 2 linewidth 5
set linetype 3 linewidth 5
set linetype 4 linewidth 5

nth_of(name) = sum [i=1:words(series_names)] (word(series_names, i) eq name ? i : 0)
is_then(i) = strstrt(word(files, i), "/") > 0
file_of(i) = is_then(i) ? word(files, i) : folder . word(files, i) . ".tsv"
series(name) = sprintf("< awk -v metric=%s -v want='%s' -f figures/stage.awk %s", \
    metric, word(columns, nth_of(name)), file_of(nth_of(name)))
is_there(i) = is_then(i) || has(word(files, i))

label_of(i) = word(labels, i)
shown = ""
places = ""
do for [i=1:words(series_names)] {
    if (is_there(i)) {
        shown = shown . " " . word(series_names, i)
        places = places . sprintf(" %d", i)
    }
}
if (shown eq "") {
    printerr "no data of " . series_names
    exit status 77
}
not_measured = "too little was measured of " . experiment . " for this plot (make bench PROFILE=full ONLY=" . experiment . ")"
nth(i) = word(shown, i)
kth(i) = int(word(places, i))
steps = sum [i=1:words(shown)] (kth(i) <= count)
if (steps == 0 && count > 0) { # its series could not be measured: the next step has something
    count = kth(1)
    steps = 1
}
log_x = strstrt(kind, "-x") > 0
log_y = strstrt(kind, "y") > 0

if (kind[1:4] eq "bars") {
    # From 0 on, for a bar is a length; one that would not be seen is a hairline. One row is taken of each series: that of the
    # x, or of its last.
    taken(_) = x_text eq "-" || column("x") == x_taken ? column(metric) : NaN
    rows = words(shown)
    array values[rows]
    high = 0
    do for [i=1:rows] {
        x_taken = x_text eq "-" || x_text eq "last" ? 0 : real(x_text)
        if (x_text eq "last") {
            stats series(nth(i)) using (given(metric) ? column("x") : NaN) nooutput
            x_taken = STATS_max
        }
        stats series(nth(i)) using (taken(0)) nooutput
        if (!exists("STATS_max")) { printerr not_measured; exit status 77 }
        values[i] = STATS_max
        high = values[i] > high ? values[i] : high
    }
    do for [i=1:rows] {
        set label 100+i noenhanced label_of(kth(i)) at graph 0, first -i right \
            offset character -0.8, 0 textcolor rgb inks[kth(i)]
        if (i <= steps) {
            set label 200+i noenhanced number_text(values[i]) \
                at first values[i], first -i left offset character 0.6, 0 textcolor rgb inks[kth(i)]
        }
    }
    set xrange [0:1.25 * high]
    set yrange [-rows - 0.6:-0.4]
    set tmargin 0.5
    set bmargin 3.6
    set lmargin 19
    set rmargin 3
    set border 1
    unset ytics
    unset grid
    set format x tick_format(1.25 * high)
    set xlabel y_text
    unset key
    plot NaN, for [i=1:steps] series(nth(i)) every ::::0 using (0):(-i):(0): \
        (values[i] > 0.004 * high ? values[i] : 0.004 * high):(-i - 0.3):(-i + 0.3) with boxxyerror fillstyle solid 1.0 noborder \
        linecolor rgb colours[kth(i)]
} else {
    on_axis(v) = log_x && v <= 0 ? NaN : v
    x_low = 1e300
    x_high = -1e300
    y_low = log_y ? 1e300 : 0
    y_high = -1e300
    longest = 10
    do for [i=1:words(shown)] {
        stats series(nth(i)) using (on_axis(column("x"))) nooutput
        if (!exists("STATS_max")) { printerr not_measured; exit status 77 }
        x_low = STATS_min < x_low ? STATS_min : x_low
        x_high = STATS_max > x_high ? STATS_max : x_high
        stats series(nth(i)) using metric nooutput
        if (!exists("STATS_max")) { printerr not_measured; exit status 77 }
        y_low = STATS_min < y_low ? STATS_min : y_low
        y_high = STATS_max > y_high ? STATS_max : y_high
        longest = strlen(label_of(kth(i))) > longest ? strlen(label_of(kth(i))) : longest
    }
    if (x_low == x_high) { printerr not_measured; exit status 77 }
    y_high = (log_y ? 1.6 : 1.25) * y_high
    set xrange [0:x_high]
    if (log_y) {
        set logscale y
        y_low = 0.6 * y_low
        set format y "%.10g"
        if (y_high < 50 * y_low) { # a decade has no more than one tic of its own
            set ytics (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
            set for [e=3:6] ytics add (10**e, 2 * 10**e, 5 * 10**e)
        }
    }
    step = 10**floor(log10(x_high / 5))
    step = step * (x_high > 25 * step ? 10 : x_high > 10 * step ? 5 : 2)
    set xtics step
    if (log_x) {
        step = x_high > 1000 ? 10 : 2
        set logscale x step
        set xtics step
        set xrange [x_low:x_high]
        set format x "%.10g"
    }
    if (x_high > 50000) { set format x (log_x ? "%.0s%c" : tick_format(x_high)) }
    if (y_high > 20000) { set format y (log_y ? "%.0s%c" : tick_format(y_high)) }
    set yrange [y_low:y_high]
    eval y_title(y_text . (log_y ? " (logarithmic)" : ""))
    set label 1002 offset character -4, 0.8
    set xlabel x_text . (log_x ? " (logarithmic)" : "")
    set tmargin 2.2
    set bmargin 3.4
    set lmargin 8
    set rmargin 0.85 * longest + 2
    unset key
    logarithmic = log_y
    label_font = ",24"
    label_pixels = 40.0
    place_of(name) = sum [j=1:words(shown)] (nth(j) eq name ? kth(j) : 0)
    title_of(name) = label_of(place_of(name))
    style_of(name) = place_of(name)
    load "figures/labels.gp"
    do for [i=1:words(shown)] {
        if (place_of(label_name[i]) > count) { unset label 100+i }
    }
    plot NaN, for [i=1:steps] series(nth(i)) using (on_axis(column("x"))):metric with lines linetype kth(i)
}
