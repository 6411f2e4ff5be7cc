"""Rare meetings: members train by themselves for some steps, then meet (docs/slow-networks.md)."""
