"""What an experiment is, how it is read from its file, and the plan that follows from it."""
