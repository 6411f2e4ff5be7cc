"""Access to Keras: models, callbacks, state, and all its private parts."""
