"""Replacements for parts of Keras."""
