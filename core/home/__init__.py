"""What of a node lies on the disk: the key, whom we trust, settings, the lock. One folder a node."""
