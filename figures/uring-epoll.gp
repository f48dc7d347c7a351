# What a second of the server's processor time is worth with a ring and with epoll, by the size of the file.
experiment = "uring-epoll"
load "figures/style.gp"

metric = "requests_per_cpu_s"
x_text = "bytes of the file (logarithmic)"
y_text = "requests per second of the server's CPU time (logarithmic)"
load "figures/log-log.gp"
