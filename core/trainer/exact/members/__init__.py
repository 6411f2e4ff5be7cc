"""Collectives over the members: sums and gathers, and what they cost."""
