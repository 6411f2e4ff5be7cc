"""Who does what in a run: roles, the plan, TF_CONFIG, shares of the batch."""
