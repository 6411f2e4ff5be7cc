"""The exact engine: an unmodified single-machine Keras script trains across members, as one process would."""
