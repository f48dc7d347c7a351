# How the claims of each source stand: one bar a source, cut into the verdicts, with their numbers.
experiment = "claims"
load "figures/style.gp"

table_file = folder . "verdicts.tsv"
stats table_file using 2 nooutput
rows = STATS_records
kinds = 12 # columns 2 to 13, in the order of the ledger's standings
height = 175 + 48 * rows
eval open_canvas(height)

up_to(last) = sum [i=2:last] column(i)
share(last) = 100.0 * up_to(last) / up_to(kinds + 1)
level(_) = rows - column(0)

# What was judged has a colour, what cannot be judged here a grey; dark ground bears white words.
array grounds[12] = [0x10479a, 0xd99a1c, 0xc0406e, 0x9fd3e6, 0xf0dfa0, 0xc9b3e0, 0x6f6f78, 0x55403a, 0x8a8a92, 0xb4b4bc, 0xd4d4da, 0xececf0]
array words_on[12] = [0xffffff, ink, 0xffffff, ink, ink, ink, 0xffffff, 0xffffff, 0xffffff, ink, ink, ink]

set lmargin 32
set rmargin 9
set tmargin 5.7
set border 0
unset ytics
unset grid
set xrange [0:100]
set yrange [0.4:rows + 0.6]
set xtics 0, 25, 100 format "%g %%"
set xlabel "share of the source's claims; in the bars how many they are" offset 0, 0.3
unset key

# A key of three rows over the whole width; gnuplot's own would take that of the bars.
name(k) = system(sprintf("head -n 1 '%s' | cut -f %d", table_file, k + 1))
do for [k=1:kinds] {
    x = 0.04 + 0.24 * ((k - 1) % 4)
    y = 1 - (26.0 + 25 * ((k - 1) / 4)) / height
    set object k rectangle center screen x, screen y size screen 0.028, screen 13.0 / height \
        fillstyle solid noborder fillcolor rgb grounds[k]
    set label (100 + k) noenhanced name(k) at screen x + 0.024, screen y left textcolor rgb ink
}

plot for [k=1:kinds] table_file using (share(k)):(level(0)):(k > 1 ? share(k) : 0):(share(k + 1)): \
         (level(0) - 0.32):(level(0) + 0.32) \
         with boxxyerror fillstyle solid noborder linecolor rgb grounds[k] notitle, \
     for [k=1:kinds] table_file using \
         (column(k + 1) > 0 ? ((k > 1 ? share(k) : 0) + share(k + 1)) / 2 : NaN):(level(0)): \
         (stringcolumn(k + 1)) \
         with labels noenhanced font ",13" textcolor rgb words_on[k] notitle, \
     table_file using (0):(level(0)):(stringcolumn("source")) \
         with labels noenhanced right offset character -1, 0 textcolor rgb ink notitle, \
     table_file using (100):(level(0)):(sprintf("%g", up_to(kinds + 1))) \
         with labels noenhanced left offset character 1, 0 textcolor rgb ink notitle
