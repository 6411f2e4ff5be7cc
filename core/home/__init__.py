"""A node's files on the disk: the key, trusted peers, settings, the lock. One folder per node."""
