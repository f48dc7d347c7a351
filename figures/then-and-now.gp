# A table of a source beside today's: two bars a row, both as ratios to one of the rows, on one
# logarithmic scale. Loaded by a script that has set `table`, the key of a [[then]] of its experiment.
rows_of = folder . "then.tsv"
table_name = ""
do for [i=1:strlen(table)] {
    table_name = table_name . (table[i:i] eq "-" ? "_" : table[i:i])
}
if (!exists("then_rows_" . table_name)) {
    printerr "figures: " . slug . ": experiment " . experiment . " has no [[then]] " . table
    exit status 1
}
about(what) = value("then_" . what . "_" . table_name)
rows = about("rows")
height = 145 + 52 * rows
eval open_canvas(height)

mine(_) = stringcolumn("key") eq table
level(_) = rows - column("row") + 1
then_ratio(_) = mine(0) && column("then_ratio") > 0 ? column("then_ratio") : NaN
ratio(_) = mine(0) && given("ratio") && column("ratio") > 0 ? column("ratio") : NaN
lowest(_) = given("ratio_low") && column("ratio_low") > 0 ? column("ratio_low") : ratio(0)
highest(_) = end_of("ratio_high", "ratio")

x_low = 1
x_high = 1
stats rows_of using (then_ratio(0) < x_low ? x_low = then_ratio(0) : 0) nooutput
stats rows_of using (then_ratio(0) > x_high ? x_high = then_ratio(0) : 0) nooutput
stats rows_of using (ratio(0) < x_low ? x_low = lowest(0) : 0) nooutput
stats rows_of using (ratio(0) > x_high ? x_high = highest(0) : 0) nooutput
there_ratio(_) = mine(0) && given("there_ratio") && column("there_ratio") > 0 ? column("there_ratio") : NaN
stats rows_of using (there_ratio(0) < x_low ? x_low = there_ratio(0) : 0) nooutput
stats rows_of using (there_ratio(0) > x_high ? x_high = there_ratio(0) : 0) nooutput
if (reference_variants ne "") { eval compare("◇") }
words_at(_) = beyond(there_ratio(0) > highest(0) ? there_ratio(0) : highest(0))
room = reference_variants ne "" ? 1.3 : 0.7 # beside a ◇
# Room at the right for the words behind a bar; as much as there is in the longest.
span = log10(x_high / x_low) > 0.2 ? log10(x_high / x_low) : 0.2
left = x_low / 10**(0.06 * span)
right = x_high * 10**(0.75 * span)

set lmargin 24
set rmargin 2
set tmargin 2.5
set border 1
unset ytics
unset grid
set grid xtics linetype 1 linecolor rgb 0xe4e4e8 linewidth 1 dashtype solid
set logscale x
set xrange [left:right]
set xtics (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500)
set yrange [0.4:rows + 0.6]
set xlabel noenhanced about("metric") . ", times that of " . about("base") . " (logarithmic)"
unset key
set label 31 noenhanced "□ " . about("source") at graph 0, graph 1 left offset 0, 0.8 \
    textcolor rgb inks[2]
set label 32 "■ " . (source eq "reference" ? "the reference machine" : "here") at graph 1, graph 1 \
    right offset 0, 0.8 textcolor rgb inks[1]
set arrow 1 from first 1, graph 0 to first 1, graph 1 nohead linecolor rgb ink linewidth 1.5 back

measured(_) = stringcolumn("source") ne "none"
beyond(a) = a > 1 ? a : 1 # words stand right of the bar, and of the line from which it begins
plot rows_of using (1):(level(0)):(then_ratio(0) < 1 ? then_ratio(0) : 1):(beyond(then_ratio(0))): \
         (level(0) + 0.05):(level(0) + 0.37) \
         with boxxyerror fillstyle empty border linewidth 1.5 linecolor rgb inks[2], \
     rows_of using (1):(level(0)):(ratio(0) < 1 ? ratio(0) : 1):(beyond(ratio(0))): \
         (level(0) - 0.37):(level(0) - 0.05) \
         with boxxyerror fillstyle solid noborder linecolor rgb colours[1], \
     rows_of using (ratio(0)):(level(0) - 0.21):(lowest(0)):(highest(0)) \
         with xerrorbars pointtype 0 linecolor rgb 0x8a8a92 linewidth 2, \
     rows_of using (there_ratio(0)):(level(0) - 0.21) \
         with points pointtype 12 pointsize 1.1 linewidth 2 linecolor rgb ink, \
     rows_of using (mine(0) ? beyond(then_ratio(0)) : NaN):(level(0) + 0.21): \
         (stringcolumn("then_text")) \
         with labels noenhanced left offset character 0.7, 0 font ",12" textcolor rgb inks[2], \
     rows_of using (mine(0) && measured(0) ? (given("ratio") ? words_at(0) : 1) : NaN): \
         (level(0) - 0.21):(stringcolumn("here_text")) \
         with labels noenhanced left offset character room, 0 font ",12" textcolor rgb inks[1], \
     rows_of using (mine(0) && !measured(0) ? 1 : NaN):(level(0) - 0.21): \
         (stringcolumn("here_text")) \
         with labels noenhanced left offset character 0.7, 0 font ",12" textcolor rgb faint, \
     rows_of using (mine(0) ? left : NaN):(level(0)):(stringcolumn("title")) \
         with labels noenhanced right offset character -1, 0 textcolor rgb ink
