"""The window, measured from outside and inside: each program here is a child process with a screen."""
