"""Where this process' random numbers come from: Python, NumPy, TensorFlow's seeds, Keras' own generator."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from core.trainer.exact.keras import keras_private as private


def capture() -> dict[str, Any]:
    """The state of all of them; plain data."""
    seeds = private.tf_seeds()
    generator = private.global_seed_generator()
    return {
        "python": _plain(random.getstate()),
        "numpy": np.random.get_state(),
        "tensorflow": None if seeds is None else _plain(seeds.getstate()),
        "keras": None if generator is None else generator.state.numpy(),
    }


def restore(state: dict[str, Any]) -> None:
    # Made first where it is not there yet: that draws from Python's.
    generator = None if state["keras"] is None else private.made_global_seed_generator()
    random.setstate(_state(state["python"]))
    np.random.set_state(state["numpy"])
    seeds = private.tf_seeds()
    if seeds is not None and state["tensorflow"] is not None:
        seeds.setstate(_state(state["tensorflow"]))
    if generator is not None:
        generator.state.assign(state["keras"])


def _plain(state: Any) -> tuple[Any, ...]:
    """The 625 numbers as one array."""
    version, numbers, rest = state
    return version, np.array(numbers, np.uint64), rest


def _state(state: Any) -> tuple[Any, ...]:
    version, numbers, rest = state
    return version, tuple(numbers.tolist()), rest
