"""Confines another laptop's script on this one, with the kernel's means."""
