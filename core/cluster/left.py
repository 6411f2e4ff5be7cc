"""What members that have left had of each batch, for when they are back. Pure."""

from __future__ import annotations

from collections.abc import Sequence


class LeftShares:
    """Members that left keep their shares relative to those present, whose shares may change."""

    def __init__(self) -> None:
        self._parts: dict[int, float] = {}
        """Share of each rank that left, per share of the others together."""

    def leave(self, shares: Sequence[int], there: Sequence[int]) -> tuple[int, ...]:
        """Only the ranks ``there`` are left. ``shares``: the last ones before. Returns the next ones."""
        before = self.among(shares)
        others = max(1, sum(before[rank] for rank in there))
        self._parts = {rank: share / others for rank, share in enumerate(before) if rank not in there}
        alike = not any(shares[rank] for rank in there)
        return tuple((1 if alike else share) if rank in there else 0 for rank, share in enumerate(shares))

    def among(self, shares: Sequence[int]) -> tuple[int, ...]:
        """``shares`` of those that are there, with a share for everybody else."""
        rows = sum(shares)
        left = {rank: max(1, round(part * rows)) for rank, part in self._parts.items()}
        return tuple(left.get(rank, share) for rank, share in enumerate(shares))
