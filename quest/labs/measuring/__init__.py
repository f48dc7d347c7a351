"""Labs in which one predicts, measures and concludes: labs/NN-slug/measure.toml.

What is handed in are three files of work/NN-slug: answers.toml (the student's), sealed.json (the
prediction, as it stood before anything was measured) and the data.
"""
