"""Wait messages of a launched run's member, and when it gives up on a silent one. Pure.

No node tells such a member why another is silent: its process may have been killed, its machine may be gone,
or the network between them. A slow member keeps reporting that it is there, so the run waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.vocabulary import units
from core.vocabulary.errors import Problem
from core.vocabulary.waits import PeerWait, TrainerStatus

TOLD_AFTER_S = 10.0
"""Longer than it takes to restore a cut connection."""


@dataclass(slots=True)
class MemberWaits:
    """``names``: of the members, by rank. ``away_s``: maximum silence of a member."""

    names: Mapping[int, str]
    away_s: float
    _missed: set[int] = field(default_factory=set)

    def on_status(self, status: TrainerStatus | None) -> list[str | Problem]:
        """Messages for a status, which the trainer reports every few seconds while it waits; None: it
        continues.

        A ``Problem`` means that the run is over.
        """
        silent = [peer for peer in status.peers if peer.heard_s >= TOLD_AFTER_S] if status is not None else []
        lost = [peer for peer in silent if peer.heard_s >= self.away_s]
        if lost:
            return [self._given_up(max(lost, key=lambda peer: peer.heard_s))]
        before, self._missed = self._missed, {peer.rank for peer in silent}
        told: list[str | Problem] = [
            f"Nothing received from {self.names[peer.rank]} for {units.duration(peer.heard_s)}; "
            "still waiting."
            for peer in silent
            if peer.rank not in before
        ]
        back = sorted(before - self._missed)
        return [*told, *(f"{self.names[rank]} is back." for rank in back)]

    def _given_up(self, peer: PeerWait) -> Problem:
        name = self.names[peer.rank]
        how = "it is still connected" if peer.connected else "it is not connected"
        return Problem(
            code="member-lost",
            what=f"Nothing received from {name} for {units.duration(peer.heard_s)}; {how}.",
            fix="See its log. Start the job again: with --checkpoints it resumes from the newest one.",
        )
