"""Measures, side by side, what Tandem promises about speed, memory and waiting: ``python -m bench``."""
