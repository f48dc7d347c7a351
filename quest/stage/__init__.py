"""The talk on stage: demos that run, are recorded and fall back, and the show around them."""
