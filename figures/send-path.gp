# What a gigabyte costs the server, by the size of the file and by the way the body takes.
experiment = "send-path"
load "figures/style.gp"

metric = "cpu_s_per_gb"
x_text = "size of the file, bytes (logarithmic)"
y_text = "the server's CPU time for a gigabyte, s (logarithmic)"
set format x "%.0s%c"
load "figures/log-log.gp"
