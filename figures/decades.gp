# A logarithmic y axis from y_low to y_high: powers of ten, and where there are less than two of them
# 2 and 5 times those. A script that sets y_format = "" gets the ticks without numbers.
if (!exists("y_format")) { y_format = y_high < 1e6 ? "%.10g" : "%.0s%c" }
set format y y_format
if (y_high < 50 * y_low) {
    do for [power=floor(log10(y_low)):floor(log10(y_high))] {
        do for [digit in "2 5"] {
            tick = digit * 10.0**power
            set ytics add (gprintf(y_format, tick) tick)
        }
    }
}
