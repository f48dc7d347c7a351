# What it costs to find a file by its path when all is in memory, by the names in the path.
experiment = "stat-cost"
load "figures/style.gp"

metric = "call_us"
y_text = "one file of 3 KB, µs"
x_text = "names in the path"
load "figures/curves.gp"
