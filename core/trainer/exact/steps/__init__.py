"""Training steps: the batch's rows, several steps in a call, and one meeting of the members after it."""
