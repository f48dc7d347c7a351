# Files of 100 KB over connections that are kept: what a second of a server's processor time is worth.
experiment = "peers-100k"
load "figures/style.gp"

metric = "gb_per_cpu_s"
x_text = "gigabytes sent per second of the server's CPU time"
load "figures/peers.gp"
