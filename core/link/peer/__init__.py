"""One paired device: which of its connections is the link, and the calls while there is none."""
