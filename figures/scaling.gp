# How requests per second grow with the workers, each on a core of its own: what was measured, the
# Universal Scalability Law that was fitted to it, and what growth without any loss would be.
experiment = "scaling"
height = 540
load "figures/style.gp"

metric = "requests_per_s"
numbers = folder . "numbers.tsv"
fitted = system("sed -n 2p '" . numbers . "'") ne ""
count = words(variants)
nth(i) = word(variants, i)

# λ, σ and κ of each variant, called <variant>-lambda, ... Without a fit λ is the rate of the fewest
# workers, for each of them, and there is no curve. Without a peak κ was not told from 0.
array rate[count]
array sigma[count]
array kappa[count]
array has_law[count]
is(name, part) = stringcolumn("key") eq name . "-" . part
per_cent(_) = sprintf("%.2f", 100 * column("value")) . (given("low") && given("high") ? \
    sprintf(" (%.2f–%.2f)", 100 * column("low"), 100 * column("high")) : "") . " %"
whole(_) = sprintf("%.0f", column("value")) . (given("low") && given("high") ? \
    sprintf(" (%.0f–%.0f)", column("low"), column("high")) : "")
x_high = 1
y_high = 0
bound = 0
do for [name in variants] {
    stats series(name) using "x" nooutput
    x_high = STATS_max > x_high ? STATS_max : x_high
    stats series(name) using "bound" nooutput
    bound = STATS_max > bound ? STATS_max : bound
}
do for [i=1:count] {
    found_rate = NaN; found_sigma = NaN; found_kappa = NaN; found_peak = 0
    sigma_words = ""; kappa_words = ""; peak_words = ""
    if (fitted) {
        stats numbers using (is(nth(i), "lambda") ? found_rate = column("value") : 0) nooutput
        stats numbers using (is(nth(i), "sigma") ? found_sigma = column("value") : 0) nooutput
        stats numbers using (is(nth(i), "sigma") ? (sigma_words = per_cent(0), 0) : 0) nooutput
        stats numbers using (is(nth(i), "kappa") ? found_kappa = column("value") : 0) nooutput
        stats numbers using (is(nth(i), "kappa") ? (kappa_words = per_cent(0), 0) : 0) nooutput
        stats numbers using (is(nth(i), "peak") && given("value") ? \
            (found_peak = column("value"), peak_words = whole(0), 0) : 0) nooutput
    }
    has_law[i] = found_rate == found_rate # NaN is not
    if (!has_law[i]) {
        fewest = 1e9
        stats series(nth(i)) using (column("x") < fewest ? (fewest = column("x"), \
            found_rate = column(metric) / fewest) : 0) nooutput
    }
    rate[i] = found_rate; sigma[i] = found_sigma; kappa[i] = found_kappa
    law_words = !has_law[i] ? "too few points for a fit" : \
        "σ " . sigma_words . ", κ " . (found_peak == 0 ? "not told from 0" : \
        kappa_words . ", most with " . peak_words . " workers" . \
        (found_peak > x_high ? ", more than were measured" : ""))
    set label 10+i noenhanced title_of(nth(i)) . ": " . law_words at graph 0, graph 1 left \
        offset character -6, 3.7 + count - i font ",13" textcolor rgb inks[style_of(nth(i))]
}
do for [i=1:count] {
    y_high = rate[i] * x_high > y_high ? rate[i] * x_high : y_high
    stats series(nth(i)) using (high_of(metric)) nooutput
    y_high = STATS_max > y_high ? STATS_max : y_high
}
y_low = 0
y_high = 1.05 * y_high

law(i, x) = rate[i] * x / (1 + sigma[i] * (x - 1) + kappa[i] * x * (x - 1))
set label 30 "line: the law that was fitted; dotted: no loss" . (bound > 0 ? \
    "; hollow: the load generator was at its limit, not fitted" : "") \
    at graph 0, graph 1 left offset character -6, 2.7 font ",13" textcolor rgb faint
set tmargin 4 + count
set xrange [0:1.03 * x_high]
set yrange [y_low:y_high]
set format y tick_format(y_high)
set xlabel "workers, each on a core of its own"
eval y_title("requests per second")
unset key
set rmargin 19
set samples 300
shown = variants
load "figures/labels.gp"

plot for [i=1:count] rate[i] * x with lines linecolor rgb tints[style_of(nth(i))] \
         linewidth 2 dashtype (2, 4), \
     for [i=1:count] has_law[i] ? (x < 1 || x > x_high ? NaN : law(i, x)) : NaN with lines \
         linetype style_of(nth(i)), \
     for [i=1:count] series(nth(i)) using "x":metric:(low_of(metric)):(high_of(metric)) \
         with yerrorbars linetype style_of(nth(i)) dashtype solid pointsize 0.8, \
     for [i=1:count] series(nth(i)) using "x":(column("bound") > 0 ? column(metric) : NaN) \
         with points pointtype 7 pointsize 0.45 linecolor rgb 0xffffff
