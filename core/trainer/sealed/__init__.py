"""Seals a trainer: only its run's members can reach its TensorFlow, through a TLS relay."""
