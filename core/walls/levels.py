"""How far the walls reach on this kernel: one table for consent, doctor and pages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from core.vocabulary.permission import Gap, Walls
from core.walls import landlock, system_calls


@dataclass(frozen=True, slots=True)
class Level:
    """``landlock``: the ABI; 0: none."""

    landlock: int
    calls: bool
    """Whether single system calls can be refused."""

    @property
    def walls(self) -> Walls:
        """``none``: not even files are protected."""
        return "default" if self.landlock >= _LEAST and self.calls else "none"

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """Gaps in the walls."""
        return tuple(gap for gap, (since, _) in GAPS.items() if self.landlock < since)


GAPS: dict[Gap, tuple[int, str]] = {"network": (4, "6.7"), "processes": (6, "6.12")}
"""The ABI of Landlock, and the Linux version, that closed each gap."""
_LEAST = 2
"""The first ABI that allows moving a file to another folder, as TensorFlow does with each checkpoint."""
FIRST = "5.19"
"""The Linux version that introduced this ABI: the first with walls."""


@cache
def found() -> Level:
    """This system's level. It does not change at run time."""
    return Level(landlock.level(), system_calls.are_filtered())
