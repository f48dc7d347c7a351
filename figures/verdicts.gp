# How the claims of each source stand: one bar a source, cut into the verdicts, with their numbers.
experiment = "claims"
load "figures/style.gp"

table_file = folder . "verdicts.tsv"
stats table_file using 2 nooutput
rows = STATS_records
kinds = 19 # columns 2 to 20, in the order of the ledger's standings
total(k) = system(sprintf("awk -F'\t' 'NR > 1 { s += $%d } END { print s + 0 }' '%s'", k + 1, table_file)) + 0
array used[19] # a word that no claim has is not in the key
shown = 0
do for [k=1:kinds] { used[k] = total(k) > 0; shown = shown + used[k] }
height = 100 + 25 * ((shown + 3) / 4) + 48 * rows
eval open_canvas(height)

up_to(last) = sum [i=2:last] column(i)
share(last) = 100.0 * up_to(last) / up_to(kinds + 1)
level(_) = rows - column(0)

# Blues hold, yellow and red ones do not, pale ones are open, and what nothing decides here is grey; dark ground bears
# white words; in dark.css it is the other way round (so this yellow is not that of a curve). What is narrower than its number has none.
array grounds[19] = [0x10479a, 0x3f78c9, 0x7fa8e0, 0x2f8f7f, 0xd99a1d, 0xc0406e, 0x7a1f3d, 0xeab85a, 0xf2cf8f, 0x9fd3e6, \
    0xe6dcf2, 0xf0dfa0, 0xc9b3e0, 0x6f6f78, 0x55403a, 0x8a8a92, 0xb4b4bc, 0xd4d4da, 0xececf0]
array words_on[19] = [0xffffff, 0xffffff, ink, 0xffffff, ink, 0xffffff, 0xffffff, ink, ink, ink, \
    ink, ink, ink, 0xffffff, 0xffffff, 0xffffff, ink, ink, ink]

set lmargin 32
set rmargin 9
set tmargin 1.4 + 1.1 * ((shown + 3) / 4)
set border 0
unset ytics
unset grid
set xrange [0:100]
set yrange [0.4:rows + 0.6]
set xtics 0, 25, 100 format "%g %%"
set xlabel "share of the source's claims; in the bars how many they are" offset 0, 0.3
unset key

# A key of some rows over the whole width; gnuplot's own would take that of the bars.
name(k) = system(sprintf("head -n 1 '%s' | cut -f %d", table_file, k + 1))
place = 0
do for [k=1:kinds] {
    if (used[k] == 0) { continue }
    x = 0.04 + 0.24 * (place % 4)
    y = 1 - (26.0 + 25 * (place / 4)) / height
    place = place + 1
    set object k rectangle center screen x, screen y size screen 0.028, screen 13.0 / height \
        fillstyle solid noborder fillcolor rgb grounds[k]
    set label (100 + k) noenhanced name(k) at screen x + 0.024, screen y left textcolor rgb ink
}

plot for [k=1:kinds] table_file using (share(k)):(level(0)):(k > 1 ? share(k) : 0):(share(k + 1)): \
         (level(0) - 0.32):(level(0) + 0.32) \
         with boxxyerror fillstyle solid noborder linecolor rgb grounds[k] notitle, \
     for [k=1:kinds] table_file using \
         (100.0 * column(k + 1) / up_to(kinds + 1) > 1.9 ? ((k > 1 ? share(k) : 0) + share(k + 1)) / 2 : NaN):(level(0)): \
         (stringcolumn(k + 1)) \
         with labels noenhanced font ",13" textcolor rgb words_on[k] notitle, \
     table_file using (0):(level(0)):(stringcolumn("source")) \
         with labels noenhanced right offset character -1, 0 textcolor rgb ink notitle, \
     table_file using (100):(level(0)):(sprintf("%g", up_to(kinds + 1))) \
         with labels noenhanced left offset character 1, 0 textcolor rgb ink notitle
