# Every call of one run: those for which the kernel has to make a larger table of descriptors stand
# out, and with a thread beside, by its wait for it. Second figure of experiment fd-alloc.
experiment = "fd-alloc"
load "figures/style.gp"

eval y_title("one call, µs (logarithmic)")
set xlabel "descriptors open (logarithmic)"
set logscale x 2
set logscale y
set xrange [*:*]
set rmargin 24
set key at graph 1.02, graph 0.9 left top
set label 1003 "each dot is one call; a large one needed a larger table" at graph 1, graph 1 \
    right offset 0, 0.5 font ",12" textcolor rgb faint

sample(name) = folder . "samples-" . name . ".tsv"
shown = ""
do for [name in "dup dup-thread"] { if (has(name)) { shown = shown . " " . name } }
plot for [i=1:words(shown)] sample(word(shown, i)) using "x":"call_us" with points pointtype 7 \
         pointsize 0.25 linecolor rgb tints[i] notitle, \
     for [i=1:words(shown)] sample(word(shown, i)) using "x":"grow_us" with points \
         pointtype (i == 1 ? 7 : 9) pointsize 0.8 linecolor rgb colours[i] \
         title title_of(word(shown, i))
