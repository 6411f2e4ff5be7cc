"""The demo: complete nodes as child processes of one machine, controlled by JSON lines as any script
would."""
