"""The visible things of a window, as exchanged between the tour and the window's eyes."""

from __future__ import annotations

import msgspec


class Spot(msgspec.Struct, frozen=True, array_like=True):
    """Pixels of the screen."""

    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0

    @property
    def middle(self) -> tuple[int, int]:
        return self.x + (self.width - 1) // 2, self.y + (self.height - 1) // 2


class Thing(msgspec.Struct, frozen=True, omit_defaults=True):
    """``spot``: all of it; ``seen``: the part not scrolled away; ``reachable``: a click would reach it."""

    kind: str
    name: str = ""
    reader: str = ""
    inside: list[str] = []
    text: str = ""
    enabled: bool = True
    checked: bool = False
    focused: bool = False
    reachable: bool = True
    spot: Spot = Spot()
    seen: Spot = Spot()
    scroller: Spot | None = None

    def is_called(self, called: str, inside: str = "") -> bool:
        """By its object name, its screen reader text, or its label."""
        return called in (self.name, self.reader, self.text) and (not inside or inside in self.inside)
