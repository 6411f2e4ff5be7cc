"""Rare meetings: each member trains alone for some steps, then all meet (docs/slow-networks.md)."""
