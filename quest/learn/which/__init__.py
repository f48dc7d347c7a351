"""`make which PID=...`: the model that a server on this machine stands on, told from /proc alone."""
