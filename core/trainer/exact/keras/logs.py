"""Logs of Keras as plain numbers: reported, and kept in checkpoints."""

from __future__ import annotations

from typing import Any

from core.trainer.exact.keras import keras_private as private


def numbers(logs: Any) -> dict[str, float]:
    """Those that are one number each; a metric may also give an array (``F1Score(average=None)``)."""
    found = {}
    for name, value in private.pythonify_logs(dict(logs or {})).items():
        try:
            found[str(name)] = float(value)
        except (TypeError, ValueError):
            continue
    return found
