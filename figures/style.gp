# The one look of all figures. A script sets `experiment` (and width, height) and loads this file,
# in the root of the tree; figures/draw.sh gives slug, out and data.
#
# Series differ in colour, in lightness (L* 32, 47, 61, 68, 8), in point and in dash: a grey print
# and a colour-blind eye lose nothing. The colours were looked at with simulated deutan, protan and
# tritan sight.

if (!exists("data")) { data = "build/data" }
if (!exists("slug")) { slug = experiment }
if (!exists("width")) { width = 800 }
if (!exists("height")) { height = 450 }

is_file(path) = system("test -r '" . path . "' && echo yes") eq "yes"
folder = data . "/" . experiment . "/"

# What the harness says about the run: footer; source, "here", "reference" or "none"; the variants
# with data, and their titles; what is missing and why; what was noticed while measuring.
footer = ""
source = "none"
variants = ""
titles = ""
missing = ""
marks = ""
failed = "" # what of it failed, and how often; and the variants of which nothing is left
failed_variants = ""
failed_titles = ""
failed_texts = ""
failed_in_part = "" # of those that have a bar some repetitions failed: so many
failed_in_part_texts = ""
reference_variants = "" # with tables of the reference run beside the reader's own, and that run
reference_footer = ""
if (is_file(folder . "meta.gp")) { load folder . "meta.gp" }
if (source eq "none" && missing ne "") {
    printerr missing
    exit status 77 # a skip: figures/module.mk keeps the reason
}
if (source eq "none") {
    printerr "figures: " . slug . ": no data of the experiment " . experiment . \
             "; run: make bench ONLY=" . experiment
    exit status 1
}

# A prefix of all ids of the file, so that two figures can stand in one page.
id = "fig_"
do for [i=1:strlen(slug)] {
    id = id . (slug[i:i] eq "-" ? "_" : slug[i:i])
}
open_canvas(height) = sprintf("set terminal svg size %d, %d dynamic enhanced rounded " . \
    "font 'DejaVu Sans,15' background 'white' name '%s'; set output '%s'", width, height, id, out)
eval open_canvas(height)
set encoding utf8

# Tints are for grounds, bars with an edge or an interval, and the dots of repetitions, over which medians lie: a
# symbol that alone says something has to stand out from the page 3 to 1, in the dark, too (tests/figures).
array colours[18] = [0x10479a, 0xc0406e, 0x3a9fc0, 0xd99a1c, 0x16161d, 0x8a8a92]
array tints[18]   = [0xc3d3ec, 0xf3cfdc, 0xd3eaf3, 0xf8e6c2, 0xcfcfd4, 0xe4e4e8]
array inks[18]    = [0x10479a, 0xa82c58, 0x1d6f8e, 0x8a5c00, 0x16161d, 0x5c5c64] # for words
ink = 0x16161d
faint = 0x6a6a72
do for [i=7:18] { # with more than six series dash and point have to tell them apart
    colours[i] = colours[i - 6]
    tints[i] = tints[i - 6]
    inks[i] = inks[i - 6]
}
do for [i=1:18] {
    set linetype i linecolor rgb colours[i] linewidth 2 dashtype (2 + i / 3, 4) pointtype i
}
set linetype 1 dashtype solid pointtype 7
set linetype 2 dashtype (10, 4) pointtype 9
set linetype 3 dashtype solid pointtype 5
set linetype 4 dashtype (10, 4, 2, 4) pointtype 11
set linetype 5 dashtype (3, 3) pointtype 13
set linetype 6 dashtype solid pointtype 6

set border 3 linecolor rgb ink linewidth 1
set tics nomirror out scale 0.6
set grid ytics linetype 1 linecolor rgb 0xdcdce2 linewidth 1 dashtype solid
set style fill solid noborder
set datafile separator tab
set datafile columnheaders
set key Left reverse samplen 2.5 spacing 1.2

# The footer names the run: no number without its origin.
run = (source eq "reference" ? "reference machine, " : "measured here, ") . footer
set label 1000 noenhanced run at screen 1, screen 0 right offset character -1, 0.9 \
    font ",11" textcolor rgb faint
remarks = (missing eq "" ? "" : "; not measured: " . missing) . (failed eq "" ? "" : "; " . failed) . \
    (marks eq "" ? "" : "; repetitions marked: " . marks)
remarks = remarks[3:*]
if (strlen(remarks) > 125) { remarks = remarks[1:124] . "…" }
set label 1001 noenhanced remarks at screen 1, screen 0 right offset character -1, 1.9 \
    font ",11" textcolor rgb faint
set tmargin 3
set bmargin (remarks ne "" ? 6.5 : 5.5)

# Where the reader has measured, the reference run stands beside: its tables, and the line that says
# how it is drawn: eval compare(sign).
there(name) = folder . "reference-" . name . ".tsv"
has_there(name) = strstrt(" " . reference_variants . " ", " " . name . " ") > 0
compare(sign) = sprintf("set label 1005 noenhanced '%s: reference machine, %s' at screen 1, screen 0 " . \
    "right offset character -1, %g font ',11' textcolor rgb faint; set bmargin %g", sign, \
    reference_footer, remarks ne "" ? 2.9 : 1.9, remarks ne "" ? 7.5 : 6.5)

# How the numbers of a linear axis that ends there are written: no two of its ticks alike. A thousand
# is shortened where every tick has whole ones.
thousands(high) = high >= 1000 ? floor(log10(high) / 3 + 1e-9) : 0
tick_format(high) = high < 10000 ? "%.10g" : high / 1000.0**thousands(high) < 10 ? "%.1s%c" : "%.0s%c"

# A number beside a bar or in a remark: two digits at least.
number_text(v) = v < 10 ? sprintf("%.2g", v) : v < 10000 ? sprintf("%.0f", v) : gprintf(tick_format(v), v)

# The y axis is named above it, where it can be read without tilting the head.
y_title(text) = "set label 1002 \"" . text . "\" at graph 0, graph 1 left offset character -6, 1.4"

# The tables have "-" for what is not there. With too few repetitions for an interval these are its
# ends, and the value stands for them. Not `set datafile missing "-"`: gnuplot 6 drops a row whose
# expression looks at a missing column, even if it then takes another one; 5.4 does not.
given(name) = stringcolumn(name) ne "-"
end_of(name, value) = column(given(name) ? name : value)
low_of(m) = end_of(m . "_low", m)
high_of(m) = end_of(m . "_high", m)

# The same for numbers.tsv; without use for their argument, as gnuplot knows no function without one.
low_end(_) = end_of("low", "value")
high_end(_) = end_of("high", "value")
interval(_) = given("low") && given("high") ? \
    sprintf("%.2f (%.2f–%.2f)", column("value"), column("low"), column("high")) : \
    sprintf("%.2f", column("value"))

# The tables of one variant, and how the experiment calls it.
series(name) = folder . name . ".tsv"
points(name) = folder . "points-" . name . ".tsv"
has(name) = strstrt(" " . variants . " ", " " . name . " ") > 0
place(name) = sum [i=1:words(variants)] (word(variants, i) eq name ? i : 0)
title_of(name) = has(name) ? word(titles, place(name)) : name
style_of(name) = place(name)
