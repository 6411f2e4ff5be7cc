"""Training steps: the batch's rows, several steps per call, and one meeting of the members after it."""
