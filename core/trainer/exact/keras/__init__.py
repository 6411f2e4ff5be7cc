"""What is read of Keras: models, callbacks, state, and all that is private there."""
