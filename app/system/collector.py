"""Keeps Python's cyclic garbage collector on the GUI thread.

By default it runs in any thread that allocates at the wrong moment. There it would destroy widgets that only
the GUI thread may touch, and occasionally crash the program in Qt or shiboken.
"""

from __future__ import annotations

import gc

THRESHOLDS = (700, 10, 50)
"""Number of new objects, and of collections of the generation before, that triggers each generation. The last
one traverses the whole window, and takes 30 ms."""


def take_over() -> None:
    """From now on only ``look`` collects."""
    gc.disable()


def look(*_: object, thresholds: tuple[int, int, int] = THRESHOLDS) -> None:
    """Collects the oldest generation that is due. Call it as events happen, on the GUI thread."""
    counts = gc.get_count()
    for generation in (2, 1, 0):
        if counts[generation] > thresholds[generation]:
            gc.collect(generation)
            return
