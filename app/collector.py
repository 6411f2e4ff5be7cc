"""Python's collector of cyclic garbage, kept to the GUI thread.

By itself it runs in whatever thread makes an object at the wrong moment. There it would destroy widgets that
only the GUI thread may touch, and now and then the program would end by a crash in Qt or shiboken.
"""

from __future__ import annotations

import gc

THRESHOLDS = (700, 10, 50)
"""Objects made, and collections of the generation before, after which one is collected. The last one walks
through the whole window, and takes 30 ms."""


def take_over() -> None:
    """From now on nothing is collected but by ``look``."""
    gc.disable()


def look(*_: object, thresholds: tuple[int, int, int] = THRESHOLDS) -> None:
    """Collects the oldest generation whose time has come. Call it as things happen, on the GUI thread."""
    counts = gc.get_count()
    for generation in (2, 1, 0):
        if counts[generation] > thresholds[generation]:
            gc.collect(generation)
            return
