"""Confines another laptop's script on this one: Landlock, seccomp, capabilities."""
