"""A run's expected speed, its measured speed, and the sentences for them."""
