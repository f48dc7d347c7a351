"""What every other package stands on: errors, files, places, programs, the loader of TOML."""
