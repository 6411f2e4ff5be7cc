"""What Tandem promises about speed, memory and waiting, measured side by side: ``python -m bench``."""
