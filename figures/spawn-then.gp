# fork and vfork with two C libraries, in 2003 and now. Third figure of experiment spawn.
experiment = "spawn"
table = "vfork"
load "figures/style.gp"
load "figures/then-and-now.gp"
