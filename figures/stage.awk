# What a slide's plot shows of a table: x, and as METRIC the column `want`; or, of the curves of a
# figure of 2003, the curve `want`, blanks written as _; of a band its middle. "during_us/1000" is in ms.
BEGIN { FS = "\t" }
/^#/ { next }
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
