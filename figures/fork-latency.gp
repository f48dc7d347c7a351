# What a new process costs while ever more are alive.
experiment = "fork-latency"
load "figures/style.gp"

metric = "fork_us"
y_text = "fork() to the child's first byte, µs"
x_text = "processes alive"
load "figures/curves.gp"
