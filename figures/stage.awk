# What a slide's plot shows of a table: x, and as METRIC the column `want`; or, of the curves of a
# figure of 2003, the curve `want`, blanks written as _; of a band its middle. "during_us/1000" is in ms.
# With `line` it reads figures/stage.tsv, and prints that line's fields as assignments of gnuplot.
BEGIN { FS = "\t" }
/^#/ { next }
line != "" && $1 != line { next }
line != "" {
    n = split($5, series, " ")
    for (i = 1; i <= n; i++) {
        parts = split(series[i], part, ":")
        then = part[1] == "2003"
        files = files " " (then ? "figures/history/" part[2] "-2003.tsv" : part[1])
        columns = columns " " (then ? part[3] : parts > 1 ? part[2] : $4)
    }
    n = split($6, label, "|")
    for (i = 1; i <= n; i++) labels = labels " \\\"" label[i] "\\\""
    printf "experiment = \"%s\"; kind = \"%s\"; metric = \"%s\"; series_names = \"%s\"; ", $2, $3, $4, $5
    printf "labels = \"%s\"; x_text = \"%s\"; y_text = \"%s\"; ", labels, $7, $8
    printf "files = \"%s\"; columns = \"%s\"\n", files, columns
    exit
}
!heads++ {
    for (i = 1; i <= NF; i++) place[$i] = i
    then = $1 == "curve"
    print "x\t" metric
    next
}
then {
    name = $1
    gsub(" ", "_", name)
    if (name == want) print $2 "\t" ($3 == "-" ? sqrt($4 * $5) : $3)
    next
}
{
    scale = split(want, of, "/") == 2 && $place[of[1]] != "-"
    print $place["x"] "\t" (scale ? $place[of[1]] / of[2] : $place[of[1]])
}
