# What a server takes in memory while its connections ask for nothing: shared memory counted once.
experiment = "server-memory"
load "figures/style.gp"

metric = "pss_kib"
x_text = "idle connections"
y_text = "memory of all the server's processes (PSS), KiB"
load "figures/curves.gp"
