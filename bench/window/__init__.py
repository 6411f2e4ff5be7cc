"""Measures the window from outside and inside: each program here is a child process with a screen."""
