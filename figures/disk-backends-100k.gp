# What two disks gave to lighttpd's ways of reading, and give to ours, against the one that waits.
experiment = "disk-backends-100k"
table = "bytes"
load "figures/style.gp"
load "figures/then-and-now.gp"
