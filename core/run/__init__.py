"""Runs: planning, the starter's and the members' machines, their files, losses, returns and records."""
