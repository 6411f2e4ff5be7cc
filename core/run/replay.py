"""Numbered events that a link which broke may have swallowed: kept until they are too many. Pure.

A link that falls silent is noticed seconds later, and what was sent meanwhile is lost although nobody refused
it. So both sides number what they say of a run, and on a new link each tells the last number that it heard.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from core.vocabulary import events as ev
from core.vocabulary.events import RunEvent

MOST = 400
"""Events that are kept; of a longer silence the oldest are lost."""


@dataclass(frozen=True, slots=True)
class Replay:
    """``said``: the newest number."""

    said: int = 0
    kept: tuple[RunEvent, ...] = ()

    def after(self, event: RunEvent) -> tuple[Self, int]:
        """With the event's number; 0: not numbered, since a newer one takes its place anyway."""
        if isinstance(event, ev.MemberProgressed | ev.WaitingChanged):
            return self, 0
        return replace(self, said=self.said + 1, kept=(*self.kept[1 - MOST :], event)), self.said + 1

    def since(self, heard: int) -> list[tuple[RunEvent, int]]:
        """What came after number ``heard``, with the numbers."""
        first = self.said - len(self.kept) + 1
        numbered = enumerate(self.kept, first)
        return [(event, number) for number, event in numbered if number > heard]
