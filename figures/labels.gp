# Names each curve at its end, where the eye is anyway: loaded by a script that has set `metric`
# (the column), `shown` (the variants) and y_low, y_high. Labels that would touch are moved apart
# and stay in the order of their curves. On a logarithmic axis the script sets logarithmic = 1.
if (!exists("logarithmic")) { logarithmic = 0 }
if (!exists("label_font")) { label_font = ",14" }
to_axis(y) = logarithmic ? log10(y) : y
from_axis(y) = logarithmic ? 10**y : y
if (!exists("label_pixels")) { label_pixels = 19.0 }
label_gap = (to_axis(y_high) - to_axis(y_low)) * label_pixels / (height - 130)
label_low = to_axis(y_low) + label_gap / 2
label_high = to_axis(y_high) - label_gap / 2

label_count = words(shown)
array label_y[label_count + 1]
array label_name[label_count + 1]
do for [i=1:label_count] {
    stats series(word(shown, i)) using (given(metric) ? last = column(metric) : NaN) nooutput
    # Into its place among those before it, the lowest first.
    place_here = i
    do for [j=i-1:1:-1] {
        if (label_y[j] > to_axis(last)) {
            label_y[j + 1] = label_y[j]
            label_name[j + 1] = label_name[j]
            place_here = j
        }
    }
    label_y[place_here] = to_axis(last)
    label_name[place_here] = word(shown, i)
}
do for [turn=1:100] {
    do for [i=1:label_count] {
        label_y[i] = label_y[i] < label_low ? label_low : label_y[i]
        label_y[i] = label_y[i] > label_high ? label_high : label_y[i]
    }
    do for [i=2:label_count] {
        overlap = label_gap - (label_y[i] - label_y[i - 1])
        if (overlap > 0) {
            label_y[i] = label_y[i] + overlap / 2
            label_y[i - 1] = label_y[i - 1] - overlap / 2
        }
    }
}
do for [i=1:label_count] {
    set label 100+i noenhanced title_of(label_name[i]) at graph 1, first from_axis(label_y[i]) \
        left offset character 1, 0 textcolor rgb inks[style_of(label_name[i])] font label_font
}
