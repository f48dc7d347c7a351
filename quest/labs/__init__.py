"""The labs' tool, started by make: labs/README.md."""
