"""Files that only `make gui-tour` runs: they need system packages that the other tests don't."""

collect_ignore = ["test_tray.py"]
