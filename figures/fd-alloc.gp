# What the next descriptor costs while ever more are open: with and without a free one low in the
# table, and for any high one.
experiment = "fd-alloc"
load "figures/style.gp"

metric = "call_us"
y_text = "the call that opens the next, µs"
x_text = "descriptors open"
load "figures/curves.gp"
