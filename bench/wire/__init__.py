"""Two members behind a cable of a given rate."""
