# A small file, and a connection for each: what a second of a server's processor time is worth.
experiment = "peers-close"
load "figures/style.gp"

metric = "requests_per_cpu_s"
x_text = "requests, each with its connection, per second of the server's CPU time"
load "figures/peers.gp"
