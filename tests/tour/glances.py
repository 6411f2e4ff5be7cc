"""What a person looks for on a screen, to pass to ``Person.until``."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.tour.thing import Thing


def code(things: list[Thing]) -> Thing | None:
    """The six digits of a pairing."""
    return next((t for t in things if t.name == "code" and len(t.text.replace(" ", "")) == 6), None)


def chief(name: str) -> Callable[[list[Thing]], bool]:
    """Whether that laptop is the chief in the form."""
    return lambda things: any(t.reader == f"Role of {name}" and t.text == "chief" for t in things)


def coming(things: list[Thing]) -> bool:
    """Whether files are on their way, with their rate and the time left."""
    return any(
        re.search(r"files to reach .+ \(\d+ % of .+ GB, .+ [kM]B/s, .+ left", thing.text) for thing in things
    )


def enabled(name: str) -> Callable[[list[Thing]], bool]:
    """Whether that thing can be used."""
    return lambda things: any(t.name == name and t.enabled for t in things)


def at_epoch(least: int) -> Callable[[list[Thing]], bool]:
    """Whether that epoch is reached."""

    def look(things: list[Thing]) -> bool:
        for thing in things:
            words = thing.text.lower()
            if words.startswith("epoch ") and "/" in words:
                return int(words.removeprefix("epoch ").split("/")[0]) >= least
        return False

    return look
