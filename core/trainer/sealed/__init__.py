"""A trainer whose TensorFlow nobody reaches but the members of its run: by a relay that speaks TLS."""
