"""How to mend a package that is missing or wrong: by pip, or, where Tandem is one frozen program, without."""

from __future__ import annotations

import sys


def is_frozen() -> bool:
    """Whether this is the one-folder program: it carries every package, and pip cannot change them."""
    return bool(getattr(sys, "frozen", False))


def mend(command: str, *, where: str = "") -> str:
    """``command``: what follows ``pip install``. ``where``: `` on every laptop``, say."""
    if is_frozen():
        return f"It comes with Tandem's program: put the newest one{where} in the place of this one, whole."
    return f"Install it{where}: pip install {command}"


def same_on_both(label: str) -> str:
    """For two laptops whose ``label`` differs."""
    if is_frozen():
        return (
            f"{label} comes with Tandem's program: use the same Tandem on both; then they can train together."
        )
    return f"Install the same {label} on both laptops; then they can train together."
