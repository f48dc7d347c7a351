# What so many readers get from two disks: in order of arrival, by elevator, asked in the order of
# the files; and from one disk.
experiment = "disk-seek"
load "figures/style.gp"

metric = "files_per_s"
y_text = "files of 100 KiB, a second"
x_text = "readers, each reading one file after another"
load "figures/doublings.gp"
