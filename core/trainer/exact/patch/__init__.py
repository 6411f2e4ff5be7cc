"""What stands in Keras' place."""
