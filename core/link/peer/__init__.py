"""One paired device: which of its connections is the link, and calls that go on while there is none."""
