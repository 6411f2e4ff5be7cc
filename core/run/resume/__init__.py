"""Which checkpoint a run resumes from, and how it comes to the laptops that need it."""
