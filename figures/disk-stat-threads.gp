# What a server gets from two disks by the number of its threads that look files up; none: the loop
# does it, and waits.
experiment = "disk-stat-threads"
load "figures/style.gp"

metric = "requests_per_s"
y_text = "requests answered a second, files of 100 KiB"
x_text = "threads that look files up"
load "figures/curves.gp"
