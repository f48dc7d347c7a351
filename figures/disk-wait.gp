# What servers get from two disks: those that wait in the one thread they have, and one that has a
# thread for each client.
experiment = "disk-wait"
load "figures/style.gp"

metric = "requests_per_s"
y_text = "requests answered a second, files of 100 KiB"
x_text = "connections, each asking for one file after another"
load "figures/doublings.gp"
