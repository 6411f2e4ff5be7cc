"""What members that meet rarely hold after each flush, and how often they met besides. Loads TensorFlow."""

from __future__ import annotations

import hashlib
from typing import Any
from unittest import mock

import numpy as np

from core.trainer.exact.keras import local_state, model_state
from core.trainer.exact.rare.rounds import Rounds


class Flushes:
    """Records the flushes and meetings of all models in this process, from its creation on."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._meetings = 0
        flush, meet_if_due = Rounds.flush, Rounds.meet_if_due

        def flushed(rounds: Rounds, *, whole: bool) -> None:
            is_due = rounds._unequal or (whole and rounds._unequal_slots)
            flush(rounds, whole=whole)
            if is_due:
                self._held.append(held(rounds._model, slots=not rounds._unequal_slots))

        def met(rounds: Rounds) -> None:
            self._meetings += rounds.since >= rounds.every
            meet_if_due(rounds)

        mock.patch.object(Rounds, "flush", flushed).start()
        mock.patch.object(Rounds, "meet_if_due", met).start()

    def taken(self) -> dict[str, Any]:
        """By name, those since the last call: a digest after each flush, and the number of meetings."""
        found = {"flush/held": np.array(self._held, "U64"), "flush/meetings": np.array(self._meetings)}
        self._held, self._meetings = [], 0
        return found


def held(model: Any, *, slots: bool) -> str:
    """Digest of everything that a flush makes or leaves equal: weights, seeds, what layers keep, the outer
    momentum, and ``slots``."""
    left_out = local_state.metric_variables(model)
    if not slots:
        left_out += [v for optimizer in model_state.optimizers(model) for v in optimizer.variables]
    ids = {id(value) for value in local_state.values_of(left_out)}
    digest = hashlib.sha256()
    for value in local_state.values_of(model_state.variables(model)):
        if id(value) not in ids:
            digest.update(value.numpy().tobytes())
    return digest.hexdigest()
