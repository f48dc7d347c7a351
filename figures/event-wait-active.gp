# What one event costs to learn of, while ever more sockets have one: a call that tells of many, or
# a call, or a signal handler, for each. Both axes are logarithmic.
experiment = "event-wait-active"
load "figures/style.gp"

metric = "event_us"
y_text = "waiting, for each event, µs (logarithmic)"
x_text = "sockets that can be read, beside idle ones (logarithmic)"
load "figures/log-log.gp"
