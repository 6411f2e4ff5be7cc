"""Which checkpoint a run resumes from, and how it reaches the laptops that need it."""
