"""A second environment for Tandem on this laptop, with another laptop's Python, TensorFlow and Keras."""
