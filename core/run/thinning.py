"""Fewer points of a long series, evenly, while it is being read. Pure."""

from __future__ import annotations

from typing import Generic, TypeVar

Item = TypeVar("Item")


class Thinned(Generic[Item]):
    """Keeps at most ``most`` items, every 2ⁿ-th, always with the first and the last. Memory stays bounded."""

    def __init__(self, most: int) -> None:
        if most < 2:
            raise ValueError(f"at least 2 points must remain: {most}")
        self._most = most
        self._step = 1
        self._seen = 0
        self._kept: list[Item] = []
        self._last: list[Item] = []

    def add(self, item: Item) -> None:
        if self._seen % self._step == 0:
            if len(self._kept) == self._most - 1:
                self._kept = self._kept[::2]
                self._step *= 2
            if self._seen % self._step == 0:
                self._kept.append(item)
                self._last = []
            else:
                self._last = [item]
        else:
            self._last = [item]
        self._seen += 1

    @property
    def items(self) -> tuple[Item, ...]:
        return (*self._kept, *self._last)
