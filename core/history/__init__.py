"""Records of runs on the disk, and the list of them."""
