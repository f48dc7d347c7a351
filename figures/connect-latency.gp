# How long it takes to connect beside idle connections: F13 of 2003. The kernel connects, and asks no
# server for it.
experiment = "request-latency"
load "figures/style.gp"

metric = "connect_us"
x_text = "idle connections (logarithmic)"
y_text = "median time to connect, µs (logarithmic)"
load "figures/log-log.gp"
