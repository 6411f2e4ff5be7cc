"""Members' collectives: sums and gathers over all of them, and what those cost."""
