"""Tandem without POSIX: its own modules see a Windows, on Linux."""
