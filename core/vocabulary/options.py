"""The options of a run that its user may choose, apart from its members, and that planning never changes.
Pure data.

To add one, add a field here and a flag in ``app/cli/run_flags.py``; read it from the ``options`` of a spec, a
plan, a trainer's order, the form's draft or a job.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Wire = Literal["f32", "bf16", "fp16", "int8", "auto"]
LEAST_STEPS, MOST_STEPS = 8, 64
"""Bounds of the steps between two meetings: what was tried keeps the loss within them."""
SYNC = "^(exact|rare(=([89]|[1-5][0-9]|6[0-4]))?)$"
Sync = Annotated[str, msgspec.Meta(pattern=SYNC, max_length=7)]
"""When members meet: ``exact``, in every step; ``rare=32``, every 32 steps, which is not exact; ``rare``: as
often as suits the link."""

AWAY_S = 600.0
"""How long a run waits by default for a laptop that is away: silent for ``limits.SILENT_S``."""
GO_ON_S = 0.0
"""The same where the others can go on without it."""
ASK_AFTER_S = 300.0
"""How long after the last progress the user is asked by default whether to keep waiting."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``RunSpec`` and ``Plan`` inherit these fields, so that records, links and JSON lines have them beside
    the others; everything else holds the value as a whole."""

    wire: Wire = "f32"
    sync: Sync = "exact"
    downloads: bool = True
    """A script with sealed trainers may still download: each laptop lets it call out."""
    away_s: float = AWAY_S
    """How long the run waits for a laptop that is away and without which it cannot go on."""
    go_on_s: float = GO_ON_S
    """How long it waits for any other laptop that is away."""
    ask_after_s: float = ASK_AFTER_S
    """How long after the last progress the user is asked whether to keep waiting; 0: never."""
    accept_differences: bool = False
    """Accept in advance every reported reason why a result may differ from one machine's."""

    @property
    def options(self) -> RunOptions:
        """These fields alone, without a subclass's."""
        return RunOptions(**{name: getattr(self, name) for name in RunOptions.__struct_fields__})


def meet_every(sync: Sync) -> int | None:
    """Steps between two meetings; 0: chosen by the link. None: members meet in every step."""
    return None if sync == "exact" else int(sync.partition("=")[2] or 0)
