"""The tolerances for exactness."""

TOLERANCE = 2e-6
"""Largest difference of a weight from one plain process, after 20 steps."""
VALUES_TOLERANCE = 2e-5
"""For a loss, metric, prediction; these are not all of order one."""
