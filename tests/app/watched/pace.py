"""Measures how much longer work takes than on an idle machine: processors share caches and cores."""

from __future__ import annotations

import threading
import time

ALONE_S = 0.001
"""Duration of ``_work`` on an idle laptop."""
EVERY_S = 0.05


class Pace:
    """Does a little work repeatedly, in its own thread, from now until ``end``."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._took_s = [ALONE_S]
        threading.Thread(target=self._measure, name="pace", daemon=True).start()

    def end(self) -> float:
        """At least 1: the 90th percentile of the work's duration relative to an idle machine."""
        self._over.set()
        return max(1.0, sorted(self._took_s)[len(self._took_s) * 9 // 10] / ALONE_S)

    def _measure(self) -> None:
        while not self._over.wait(EVERY_S):
            began_s = time.thread_time()
            _work()
            self._took_s.append(time.thread_time() - began_s)


def _work() -> None:
    """Many small objects, like widgets: equally sensitive to other load."""
    words = {str(number): [number] for number in range(3_000)}
    sorted(words, key=lambda word: word[::-1])
