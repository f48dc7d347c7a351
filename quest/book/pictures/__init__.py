"""Pictures for slides that gnuplot cannot draw: each is built up by steps, to scale, its numbers from the export.

data reads what the exporter left; svg writes elements; waits, memory, asking and tally draw. A picture is a part of its
slide, so it has the deck's font and colours (slides/pictures.css); an element of class "fragment" is a step.
"""
