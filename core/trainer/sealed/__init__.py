"""A trainer whose TensorFlow only the members of its run can reach: by a relay that speaks TLS."""
