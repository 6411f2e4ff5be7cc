"""Tandem where POSIX is not: its own modules are shown a Windows, on Linux."""
