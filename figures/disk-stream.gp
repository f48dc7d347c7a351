# What is left of a disk's 30 MB/s when a file lies in pieces, and when two are read at once.
experiment = "disk-stream"
load "figures/style.gp"

metric = "mb_per_s"
y_text = "data read by all readers, MB/s"
x_text = "one piece of a file of 4096 KiB, KiB"
load "figures/doublings.gp"
