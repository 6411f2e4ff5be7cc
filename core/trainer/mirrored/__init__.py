"""Mirrored strategies that a script opens itself, in a run of several members."""
