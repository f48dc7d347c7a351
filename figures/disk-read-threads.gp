# What so many threads that read get from two disks, in order of arrival and by elevator.
experiment = "disk-read-threads"
load "figures/style.gp"

metric = "requests_per_s"
y_text = "requests answered a second, files of 100 KiB"
x_text = "threads that read"
load "figures/doublings.gp"
