"""The demo: whole nodes as child processes of one machine, spoken to in JSON lines like any script would."""
