# What a new thread costs beside a new process, while ever more of them are alive.
experiment = "thread-create"
load "figures/style.gp"

metric = "create_us"
y_text = "call to the new one's first byte, µs"
x_text = "threads or processes alive"
load "figures/curves.gp"
