"""Exit codes of the command line. Scripts rely on these numbers; docs/headless.md lists them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Only 0 is success."""

    OK = 0
    FAILED = 1
    """The run failed, the demo broke a promise, or the doctor found an error."""
    USAGE = 2
    """The command line was not understood; nothing was done."""
    REFUSED = 3
    """Refused or declined, here or by the other laptop: unknown device, different codes, no consent…"""
    CANNOT_START = 4
    """The node cannot start: home in use or unusable, port unusable, key with wrong permissions…"""
    STOPPED = 5
    """A person stopped the run on one of its laptops."""
    DIFFERS = 6
    """The run finished, but not with one machine's result, and nobody had accepted that beforehand."""
    INTERRUPTED = 130
    """Ctrl-C (or SIGTERM) on this laptop."""
