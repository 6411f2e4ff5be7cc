"""What every kind of GPU reading offers to the sampler. Blocks: lives on the telemetry thread."""

from __future__ import annotations

from typing import Protocol

from core.vocabulary.readings import GpuReading


class GpuSource(Protocol):
    """The GPUs of one maker."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def read(self) -> tuple[GpuReading, ...]:
        """One reading for each name. Never raises: what is not to be had is None, with the reason."""
        ...

    def close(self) -> None: ...


def joined(reasons: list[str]) -> str:
    """Several reasons as one sentence part, each once."""
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason))
