"""Finds the script's own random generators, such as ``np.random.default_rng(1)``, by name, for checkpoints.

It finds generators held by variables of the script's modules and running functions, or by callbacks, directly
or within the script's own objects. Security invariant: a checkpoint may come from another laptop, so it only
sets numbers in range, in generators that the script has under the same name.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import random
import sys
import sysconfig
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from core.trainer.exact.resume import plain

_DEEPEST = 4
_MOST = 5000
"""Most objects searched."""
_MOST_ITEMS = 64
"""Most items searched of a list or dict."""
WORDS = 624
"""Words of the Mersenne Twister's state."""
_CORE, _LIBRARY = str(Path(__file__).parents[3]), sysconfig.get_paths()["stdlib"]

State = list[Any]
"""The generator's kind, and its numbers; plain data."""


def find(callbacks: Sequence[Any] = ()) -> dict[str, Any]:
    """The generators by name. Call it in the thread in which the script calls ``fit``."""
    return _within(_roots(callbacks))


def _within(roots: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    seen: set[int] = set()
    left = [(name, value, _DEEPEST) for name, value in roots]
    while left and len(seen) < _MOST:
        name, value, depth = left.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_generator(value):
            found.setdefault(name, []).append(value)
        elif depth:
            left += [(f"{name}.{part}", held, depth - 1) for part, held in _parts(value)]
    # Several may have one name, as in a function that calls itself. The name contains their count: with one
    # more or less, each would get another's state.
    return {
        name if len(alike) == 1 else f"{name} ({place} of {len(alike)})": each
        for name, alike in found.items()
        for place, each in enumerate(alike, 1)
    }


def states(callbacks: Sequence[Any] = ()) -> dict[str, State]:
    """Each generator's state for a checkpoint, by name."""
    return {name: _state(generator) for name, generator in find(callbacks).items()}


def restore(
    kept: Any,
    before: Mapping[str, State],
    data: Sequence[Any],
    callbacks: Sequence[Any],
    say: Callable[[str], None],
) -> frozenset[str]:
    """Sets generators to the checkpoint's states. Returns the names of those set.

    Leaves out those that draw `data`, or differ from their states `before` it was read again: reading has
    brought them to their position. Reports by `say` those that cannot be set. Raises TandemError if `kept` is
    not from ``states``.
    """
    if not isinstance(kept, dict):
        raise plain.broken("random generators")
    found, of_data = find(callbacks), {id(each) for each in _within(enumerate(data)).values()}
    done = []
    for name, state in kept.items():
        generator = found.get(name)
        if generator is not None:
            own = _state(generator)
            if id(generator) in of_data or (name in before and not _same(own, before[name])):
                continue
            if _same(own, state) or _set(generator, own, state):
                done.append(name)
                continue
        say(
            f"The script's random generator {name:.100} is not where the checkpoint left it: what it draws "
            "from here on differs from a run without a stop."
        )
    return frozenset(done)


class Snapshot:
    """The present states of all generators, to be restored in this process."""

    def __init__(self) -> None:
        self._generators = [(name, each, _raw(each)) for name, each in find().items()]

    def restore(self, names: Collection[str] | None = None) -> None:
        """``names``: the generators to restore; None: all."""
        for name, generator, raw in self._generators:
            if names is None or name in names:
                _set_raw(generator, raw)


# --- finding them


def _roots(callbacks: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    frame: types.FrameType | None = inspect.currentframe()
    modules: set[int] = set()
    while frame is not None:
        if _is_scripts(frame.f_code.co_filename):
            name = str(frame.f_globals.get("__name__", "")).removeprefix("__main__")
            if frame.f_code.co_name != "<module>":
                yield from (
                    (f"{frame.f_code.co_name}.{key}", held) for key, held in list(frame.f_locals.items())
                )
            if id(frame.f_globals) not in modules:
                modules.add(id(frame.f_globals))
                yield from _named(frame.f_globals, f"{name}." if name else "")
        frame = frame.f_back
    yield from ((f"callbacks.{place}", callback) for place, callback in enumerate(callbacks))


def _named(names: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    return ((before + name, held) for name, held in list(names.items()) if not name.startswith("__"))


@functools.cache
def _is_scripts(file: str) -> bool:
    """Whether a module's file is the script's, not a library's or Tandem's."""
    return Path(file).is_absolute() and not (
        file.startswith((_CORE + os.sep, _LIBRARY)) or "site-packages" in file or "dist-packages" in file
    )


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    match value:
        case types.ModuleType():
            if _is_scripts(getattr(value, "__file__", None) or ""):
                yield from _named(vars(value))
        case list() | tuple():
            yield from enumerate(value[:_MOST_ITEMS])
        case dict():
            yield from [
                (key, held) for key, held in list(value.items())[:_MOST_ITEMS] if isinstance(key, str)
            ]
        case types.FunctionType():
            yield from _used(value)
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
                try:
                    yield name, cell.cell_contents
                except ValueError:  # Not assigned yet.
                    continue
        case types.MethodType():
            yield "self", value.__self__
        case functools.partial():
            yield from enumerate((value.func, *value.args, *value.keywords.values()))
        case _ if _is_own(type(value)):
            yield from list(getattr(value, "__dict__", {}).items())
            for method in vars(type(value)).values():
                yield from _used(method) if isinstance(method, types.FunctionType) else ()


def _used(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Generators that a function's code names in its module."""
    names, there = function.__code__.co_names, function.__globals__
    return ((name, there[name]) for name in names if name in there and is_generator(there[name]))


def _is_own(kind: type) -> bool:
    """Whether the script defines the class."""
    module = sys.modules.get(kind.__module__)
    return kind.__module__ == "__main__" or _is_scripts(getattr(module, "__file__", None) or "")


# --- reading and setting them


def is_generator(value: Any) -> bool:
    kinds = (np.random.Generator, np.random.RandomState, tf.random.Generator, keras.random.SeedGenerator)
    return isinstance(value, kinds) or type(value) is random.Random


def _raw(generator: Any) -> Any:
    match generator:
        case random.Random():
            return generator.getstate()
        case np.random.Generator():
            return generator.bit_generator.state
        case np.random.RandomState():
            return generator.get_state(legacy=False)
    return generator.state.numpy()


def _set_raw(generator: Any, raw: Any) -> None:
    match generator:
        case random.Random():
            generator.setstate(raw)
        case np.random.Generator():
            generator.bit_generator.state = raw
        case np.random.RandomState():
            generator.set_state(raw)
        case _:
            generator.state.assign(raw)


def _state(generator: Any) -> State:
    raw = _raw(generator)
    match raw:
        case np.ndarray() as numbers:
            return ["variable", numbers]
        case (version, numbers, gauss):
            return ["python", version, np.array(numbers, np.uint64), gauss]
        case {"bit_generator": "PCG64" | "PCG64DXSM" as kind, "state": {"state": at, "inc": by}}:
            return [kind, int(at), int(by), int(raw["has_uint32"]), int(raw["uinteger"])]
        case {"bit_generator": "MT19937", "state": {"key": key, "pos": place}}:
            return ["MT19937", key, int(place), int(raw.get("has_gauss", 0)), float(raw.get("gauss", 0.0))]
    return ["other", hashlib.sha256(repr(raw).encode()).hexdigest()]


def _set(generator: Any, own: State, state: Any) -> bool:
    """Sets a generator, whose state is `own`, to `state`. Returns whether that was possible."""
    match state:
        case ["variable", np.ndarray() as numbers] if own[0] == "variable":
            if (numbers.shape, numbers.dtype) != (own[1].shape, own[1].dtype):
                return False
            raw: Any = numbers
        case ["python", 3, np.ndarray() as numbers, None | float() as gauss] if own[0] == "python":
            if not is_twister(numbers):
                return False
            raw = (3, tuple(numbers.tolist()), gauss)
        case ["PCG64" | "PCG64DXSM" as kind, int() as at, int() as by, 0 | 1 as has, int() as rest] if (
            own[0] == kind
        ):
            if not (0 <= at < 2**128 and 0 <= by < 2**128 and by % 2 and 0 <= rest < 2**32):
                return False
            raw = {
                "bit_generator": kind,
                "state": {"state": at, "inc": by},
                "has_uint32": has,
                "uinteger": rest,
            }
        case ["MT19937", np.ndarray() as key, int() as place, 0 | 1 as has, float() as gauss] if (
            own[0] == "MT19937"
        ):
            if (key.shape, key.dtype.name) != ((WORDS,), "uint32") or not 0 <= place <= WORDS:
                return False
            raw = {"bit_generator": "MT19937", "state": {"key": key, "pos": place}}
            raw |= {"has_gauss": has, "gauss": gauss} if isinstance(generator, np.random.RandomState) else {}
        case _:
            return False
    _set_raw(generator, raw)
    return True


def is_twister(numbers: np.ndarray) -> bool:
    """Whether these are a valid state of a Mersenne Twister.

    NumPy and Python do not check the position within it, and would read the memory behind it.
    """
    if numbers.shape != (WORDS + 1,) or numbers.dtype.name != "uint64":
        return False
    return int(numbers[-1]) <= WORDS and int(numbers[:-1].max()) < 2**32


def _same(one: Any, other: Any) -> bool:
    return plain.is_plain(other) and plain.pack(one) == plain.pack(other)
