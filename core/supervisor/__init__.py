"""Starts, watches and ends trainer processes, and says why one ended."""
