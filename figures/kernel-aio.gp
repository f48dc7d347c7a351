# How long the calls keep their caller that ask for reads and are not to wait for them, by the
# number of reads that are asked for at once.
experiment = "kernel-aio"
load "figures/style.gp"

metric = "submit_us"
y_text = "the calls that ask, µs (logarithmic)"
x_text = "reads at once (logarithmic)"
load "figures/log-log.gp"
