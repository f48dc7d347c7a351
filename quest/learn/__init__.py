"""For a reader who works alone: `make run`, `make read`, `make next`, `make path`."""
