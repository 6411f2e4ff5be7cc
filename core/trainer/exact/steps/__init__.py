"""Training steps: each member's rows, several steps per call, and one meeting of the members after a call."""
