"""What the command line ends with. Scripts rely on these numbers; docs/headless.md lists them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """0 is the only success."""

    OK = 0
    FAILED = 1
    """The run failed, a demo's promise did not hold, or the doctor found an error."""
    USAGE = 2
    """The command line was not understood; nothing was done."""
    REFUSED = 3
    """Refused or declined, here or by the other laptop: unknown device, different codes, no consent…"""
    CANNOT_START = 4
    """The node cannot start: home held or unusable, port unusable, key with wrong rights…"""
    STOPPED = 5
    """The run was stopped by a person on one of its laptops."""
    DIFFERS = 6
    """The run finished, but not with the result of one machine, and nobody had accepted that beforehand."""
    INTERRUPTED = 130
    """Ctrl-C (or SIGTERM) here."""
