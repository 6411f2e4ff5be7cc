"""Saves the trained models at a run's end, whether the script saves any or not. Main thread of the trainer.

Never fails a run: reports what cannot be saved.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import tensorflow as tf

from core.project.copy import check_room
from core.trainer.exact.keras import model_state
from core.vocabulary.errors import TandemError

MOST = 20
"""Most models saved of one run; a search over many settings trains hundreds."""
_PARTS = "parts"
"""Subfolder for incomplete files: a trainer may be killed while it writes."""

Say = Callable[[str], None]


def bytes_of(models: Sequence[Any]) -> int:
    """Approximate disk space of the saved models: weights and optimizers' state."""
    return sum(_size(variable) for model in models for variable in model_state.variables(model))


def save(models: Sequence[Any], folder: Path, say: Say) -> bool:
    """Saves each as ``model.keras``, ``model-2.keras`` and so on, in the order in which they were trained.

    A model that Keras cannot save whole becomes ``model.weights.h5``. False if one could not be saved.
    """
    parts, saved = folder / _PARTS, True
    if len(models) > MOST:
        say(f"The script trained {len(models)} models; the last {MOST} of them are saved.")
    for number, model in list(enumerate(models, 1))[-MOST:]:
        stem = "model" if number == 1 else f"model-{number}"
        try:
            parts.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_room(parts, bytes_of([model]))
            _save(model, parts, stem, say)
        except Exception as error:
            saved = False
            say(f"The trained model ({stem}) could not be saved: {_reason(error)}")
    shutil.rmtree(parts, ignore_errors=True)
    return saved


def _save(model: Any, parts: Path, stem: str, say: Say) -> None:
    whole, weights = parts / f"{stem}.keras", parts / f"{stem}.weights.h5"
    try:
        model.save(whole)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        model.save_weights(weights)
        weights.replace(parts.parent / weights.name)
        say(
            f"Keras cannot save the whole model {model.name}, of the class {type(model).__name__} "
            f"({_reason(error)}), so only its weights are saved, as {weights.name}. To save it whole, give "
            "the class a get_config method."
        )
    else:
        whole.replace(parts.parent / whole.name)


def _size(variable: Any) -> int:
    return int(tf.TensorShape(variable.shape).num_elements() or 0) * int(tf.as_dtype(variable.dtype).size)


def _reason(error: Exception) -> str:
    """The error in one line; Keras' messages go on for pages."""
    if isinstance(error, TandemError):
        return error.what
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}."
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first:.300}" if first else type(error).__name__
