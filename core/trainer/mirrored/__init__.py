"""The mirrored strategy that a script opens itself, in a run of several members."""
