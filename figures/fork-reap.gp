# What it costs to end a process and collect its status, while others remain. Read from right to
# left: the children are ended one after the other.
experiment = "fork-reap"
load "figures/style.gp"

metric = "reap_us"
y_text = "kill() to waitpid(), µs"
x_text = "processes that remain"
load "figures/curves.gp"
