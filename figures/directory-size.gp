# What it costs to find out that a name is not in a folder, by the number of names that are: on a
# file system that keeps them in a list, and on those that keep them in a hash or a tree.
experiment = "directory-size"
load "figures/style.gp"

metric = "miss_us"
y_text = "open() of a name that is not there, µs (logarithmic)"
x_text = "names in the folder (logarithmic)"
load "figures/log-log.gp"
