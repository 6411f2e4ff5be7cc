"""The script's own random generators: which are found, and what a checkpoint may set."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.cluster


class Data:
    """As a script's own class of data."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)


def draw(each: Any) -> float:
    return float(each.random() if isinstance(each, random.Random) else each.uniform())


def test_generators_are_found_by_name_and_go_on_where_they_were() -> None:
    from core.trainer.exact.resume import own_generators

    by_pcg, old, plain = np.random.default_rng(1), np.random.RandomState(2), random.Random(3)
    twister, held = np.random.Generator(np.random.MT19937(4)), [Data(5)]

    def closes() -> float:
        return draw(by_pcg)

    before = own_generators.states()
    here = "test_generators_are_found_by_name_and_go_on_where_they_were"
    assert {f"{here}.by_pcg", f"{here}.old", f"{here}.plain", f"{here}.twister"} <= set(before)
    assert f"{here}.held.0.random" in before
    every = (by_pcg, old, plain, twister, held[0].random)
    drawn = [closes(), *map(draw, every)]
    del every
    said: list[str] = []
    own_generators.restore(before, {}, (), (), said.append)
    every = (by_pcg, old, plain, twister, held[0].random)
    assert [closes(), *map(draw, every)] == drawn and not said


def test_two_under_one_name_are_both_kept_and_never_mixed() -> None:
    from core.trainer.exact.resume import own_generators

    said: list[str] = []

    def calls_itself(*others: Any) -> dict[str, Any]:
        generator = np.random.default_rng(len(others))
        both = (*others, generator)
        if not others:
            kept = calls_itself(generator)
            there = generator.bit_generator.state
            own_generators.restore(kept, {}, (), (), said.append)  # where there is one
            assert generator.bit_generator.state == there
            return kept
        kept = own_generators.states()
        drawn = [draw(each) for each in both]
        own_generators.restore(kept, {}, (), (), said.append)
        assert [draw(each) for each in both] == drawn and not said
        return kept

    names = {name for name in calls_itself() if name.endswith("of 2)")}
    assert names == {f"calls_itself.generator ({place} of 2)" for place in (1, 2)}
    assert len(said) == 2 and all(name in "".join(said) for name in names)


def test_generators_that_draw_data_stay_where_reading_it_brought_them() -> None:
    from core.trainer.exact.resume import own_generators

    data, read, other = Data(1), np.random.default_rng(2), np.random.default_rng(3)
    kept = own_generators.states()
    before = own_generators.states()
    draw(read)
    draw(other)
    there = read.bit_generator.state, data.random.bit_generator.state
    del before[next(name for name in before if name.endswith(".other"))]
    draw(data.random)
    after = data.random.bit_generator.state
    own_generators.restore(kept, before, (data,), (), lambda words: None)
    assert (read.bit_generator.state, data.random.bit_generator.state) == (there[0], after)
    assert draw(other) == draw(np.random.default_rng(3))


def test_what_cannot_be_set_is_named_and_nothing_else_is_touched() -> None:
    from core.trainer.exact.resume import own_generators

    generator, sfc = np.random.default_rng(1), np.random.Generator(np.random.SFC64(1))
    there = SimpleNamespace(state=generator.bit_generator.state)
    kept = own_generators.states()
    mine = next(name for name in kept if name.endswith(".generator"))
    harm: list[Any] = [
        ["PCG64", 2**128, 1, 0, 0],
        ["PCG64", 1, 2, 0, 0],
        ["PCG64", 1, 1, 7, 0],
        ["PCG64", "1", 1, 0, 0],
        ["MT19937", np.zeros(624, np.uint32), 10**6, 0, 0.0],
        ["python", 3, np.full(625, 10**6, np.uint64), None],
        ["variable", np.zeros(3)],
        "PCG64",
    ]
    for state in harm:
        said: list[str] = []
        own_generators.restore({mine: state}, {}, (), (), said.append)
        assert len(said) == 1 and mine in said[0]
        assert generator.bit_generator.state == there.state
    said = []
    own_generators.restore({"gone": kept[mine]}, {}, (), (), said.append)
    assert len(said) == 1 and "gone" in said[0]
    own_generators.restore(kept, {}, (), (), said.append)
    assert len(said) == 1, "one that NumPy's other kinds have, and that has not moved"
    draw(sfc)
    own_generators.restore(kept, {}, (), (), said.append)
    assert len(said) == 2 and "sfc" in said[1]


def test_a_restored_generator_is_restored_again_after_validations_were_read_again() -> None:
    from core.trainer.exact.resume import own_generators
    from core.trainer.exact.resume.randomness import Generators

    of_validations, of_data = np.random.default_rng(1), np.random.default_rng(2)
    kept = own_generators.states()
    draw(of_validations)
    before = own_generators.states()
    draw(of_data)  # reading data again
    names = own_generators.restore(kept, before, (), (), lambda words: None)
    at_data = of_data.bit_generator.state
    generators = Generators()
    draw(of_validations)  # reading validations again
    draw(of_data)
    moved = of_data.bit_generator.state
    generators.restore(names)
    assert draw(of_validations) == draw(np.random.default_rng(1))
    assert of_data.bit_generator.state == moved != at_data
