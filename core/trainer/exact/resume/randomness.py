"""State of this process' random numbers: Python, NumPy, TensorFlow's seeds, Keras' own generator."""

from __future__ import annotations

import random
from collections.abc import Collection
from typing import Any

import numpy as np

from core.trainer.exact.keras import keras_private as private
from core.trainer.exact.resume import own_generators, plain
from core.trainer.exact.resume.own_generators import WORDS, is_twister


def capture() -> dict[str, Any]:
    """The state of all generators; plain data."""
    seeds = private.tf_seeds()
    generator = private.global_seed_generator()
    return {
        "python": _plain(random.getstate()),
        "numpy": np.random.get_state(),
        "tensorflow": None if seeds is None else _plain(seeds.getstate()),
        "keras": None if generator is None else generator.state.numpy(),
    }


def restore(state: dict[str, Any]) -> None:
    """Restores a captured state. Raises TandemError for anything that ``capture`` does not return.

    Security invariant: NumPy does not check the position in its state, and would read the memory behind it.
    """
    if not _is_sound(state):
        raise plain.broken("random numbers")
    # First of all, as creating a missing one draws from Python's generator.
    generator = None if state["keras"] is None else private.made_global_seed_generator()
    random.setstate(_state(state["python"]))
    np.random.set_state(state["numpy"])
    seeds = private.tf_seeds()
    if seeds is not None and state["tensorflow"] is not None:
        seeds.setstate(_state(state["tensorflow"]))
    if generator is not None:
        generator.state.assign(state["keras"])


class Generators:
    """The present states of this process' generators, the script's own included, to be restored in it.

    Unlike ``capture``, it covers any kind of NumPy's generator.
    """

    def __init__(self) -> None:
        self._seeds, self._keras = private.tf_seeds(), private.global_seed_generator()
        self._python, self._numpy = random.getstate(), np.random.get_state(legacy=False)
        self._tensorflow = None if self._seeds is None else self._seeds.getstate()
        self._state = None if self._keras is None else self._keras.state.numpy()
        self._own = own_generators.Snapshot()

    def restore(self, own: Collection[str] | None = None) -> None:
        """``own``: names of the script's own generators to restore; None: all."""
        random.setstate(self._python)
        np.random.set_state(self._numpy)
        if self._seeds is not None:
            self._seeds.setstate(self._tensorflow)
        if self._keras is not None:
            self._keras.state.assign(self._state)
        self._own.restore(own)


def _is_sound(state: Any) -> bool:
    match state:
        case {
            "python": python,
            "numpy": ("MT19937", np.ndarray() as key, int(place), int(), float()),
            "tensorflow": tensorflow,
            "keras": None | np.ndarray() as keras,
        }:
            return (
                _is_pythons(python)
                and (tensorflow is None or _is_pythons(tensorflow))
                and (key.shape, key.dtype.name) == ((WORDS,), "uint32")
                and 0 <= place <= WORDS
                and (keras is None or (keras.shape, keras.dtype.kind) == ((2,), "i"))
            )
    return False


def _is_pythons(state: Any) -> bool:
    match state:
        case (3, np.ndarray() as numbers, None | float()):
            return is_twister(numbers)
    return False


def _plain(state: Any) -> tuple[Any, ...]:
    """Python's state, with its 625 numbers as one array."""
    version, numbers, rest = state
    return version, np.array(numbers, np.uint64), rest


def _state(state: Any) -> tuple[Any, ...]:
    version, numbers, rest = state
    return version, tuple(numbers.tolist()), rest
