"""How fast a run is expected to be, how fast it was, and the sentences for it."""
