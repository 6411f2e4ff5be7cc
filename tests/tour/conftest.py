"""What only `make gui-tour` runs: it needs packages of the system that the tests do without."""

collect_ignore = ["test_tray.py"]
