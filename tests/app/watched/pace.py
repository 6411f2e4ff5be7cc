"""How much longer work takes now than on a machine that is left alone: processors share caches and cores."""

from __future__ import annotations

import threading
import time

ALONE_S = 0.001
"""What ``_work`` takes on a laptop that does nothing else."""
EVERY_S = 0.05


class Pace:
    """Works a little, again and again, in a thread of its own, from now until ``end``."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._took_s = [ALONE_S]
        threading.Thread(target=self._measure, name="pace", daemon=True).start()

    def end(self) -> float:
        """At least 1: nine in ten times, work took at most so many times what it takes alone."""
        self._over.set()
        return max(1.0, sorted(self._took_s)[len(self._took_s) * 9 // 10] / ALONE_S)

    def _measure(self) -> None:
        while not self._over.wait(EVERY_S):
            began_s = time.thread_time()
            _work()
            self._took_s.append(time.thread_time() - began_s)


def _work() -> None:
    """Many small objects, as widgets are: it suffers from others as they do."""
    words = {str(number): [number] for number in range(3_000)}
    sorted(words, key=lambda word: word[::-1])
