# A small file over connections that are kept: what a second of a server's processor time is worth.
experiment = "peers-small"
load "figures/style.gp"

metric = "requests_per_cpu_s"
x_text = "requests per second of the server's CPU time"
load "figures/peers.gp"
