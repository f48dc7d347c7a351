"""What somebody who reads alone talks to: `make run`, `make next`, `make path`, `make predict`."""
