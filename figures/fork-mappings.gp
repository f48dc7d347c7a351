# What fork costs against the number of mappings of the parent, of one page each.
experiment = "fork-mappings"
load "figures/style.gp"

metric = "fork_ms"
y_text = "fork() in the parent, ms"
x_text = "mappings of one page"
load "figures/curves.gp"
