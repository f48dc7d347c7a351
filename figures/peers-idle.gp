# What a connection takes of the server's memory that has been served once and says nothing more, beside
# the most of them.
experiment = "peers-idle"
load "figures/style.gp"

stats series(word(variants, 1)) using "x" nooutput
most = STATS_max
each(_) = (column("during_kib") - column("before_kib")) * 1024 / most
amount(_) = column("x") == most ? each(0) : NaN
lowest(_) = amount(0)
highest(_) = amount(0)
x_text = sprintf("bytes of the server's memory for each of %.0f idle connections", most)
load "figures/peers.gp"
