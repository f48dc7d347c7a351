# What a statically linked program saves, in 2003 and now. Fourth figure of experiment fork-latency.
experiment = "fork-latency"
table = "linking"
load "figures/style.gp"
load "figures/then-and-now.gp"
