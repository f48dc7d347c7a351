# What a slide's plot shows of a table: x, and as METRIC the column `want`; or, of the curves of a
# figure of 2003, the curve `want`, with its cycles as microseconds (900 MHz).
/^#/ { next }
!heads++ {
    for (i = 1; i <= NF; i++) place[$i] = i
    then = $1 == "curve"
    unit = $NF == "cycles" ? 900 : 1
    print "x\t" metric
    next
}
then {
    name = NF == 4 ? $1 ":" $2 : $1
    gsub(" ", "_", name)
    if (name == want) print $(NF - 1) "\t" $NF / unit
    next
}
{ print $place["x"] "\t" $place[want] }
