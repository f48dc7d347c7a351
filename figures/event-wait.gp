# What one wait costs beside ever more sockets of which nothing is heard: select and poll look at
# all of them, the others only at those that have something. Both axes are logarithmic.
experiment = "event-wait"
load "figures/style.gp"

metric = "wait_us"
y_text = "one wait, µs (logarithmic)"
x_text = "idle sockets beside the one that can be read (logarithmic)"
load "figures/log-log.gp"
