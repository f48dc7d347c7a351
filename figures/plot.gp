# A figure that is a line of figures/plots.tsv: the one that the slug names.
field(n) = system(sprintf("awk -F '\\t' '$1 == \"%s\" { print $%d }' figures/plots.tsv", slug, n))
experiment = field(2)
metric = field(4)
table = metric
x_text = field(5)
y_text = field(6)
chosen = field(7)
if (field(3) eq "then-curves") { width = 900; height = 480 }
load "figures/style.gp"
load "figures/" . field(3) . ".gp"
