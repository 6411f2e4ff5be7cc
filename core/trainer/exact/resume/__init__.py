"""Writes checkpoints of a whole training, and resumes from one."""
