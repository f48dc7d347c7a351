# How long a request takes on a connection that is kept, beside idle connections, at the servers that
# are deployed: F14 and F15 of 2003, whose curves were of Apache.
experiment = "peers-waiting"
load "figures/style.gp"

metric = "request_us"
x_text = "idle connections (logarithmic)"
y_text = "median time of a request on a kept connection, µs (logarithmic)"
load "figures/log-log.gp"
