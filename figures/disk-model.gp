# What one and two disks of 2006 give to so many readers, by the model of the museum disk.
experiment = "disk-model"
load "figures/style.gp"

metric = "files_per_s"
y_text = "files of 100 KiB, a second"
x_text = "readers, each reading one file after another"
load "figures/doublings.gp"
