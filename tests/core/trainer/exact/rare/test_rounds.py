"""Rounds of two members against the same arithmetic in one place, whether meetings overlap steps or not."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.trainer.exact.rare import codec, outer
from tests.core.exchange.members import meeting
from tests.core.trainer.exact.members.test_chief_leaves import members
from tests.core.trainer.exact.members.test_whole_step import Beside, wait_until_asked

pytestmark = pytest.mark.cluster

SIZE, EVERY, SHARES = 100, 8, (5, 3)
FLUSHES = (19, 28, 29)
"""Steps after which members become equal: between meetings, while one is under way, and right after that."""
STEPS = 54
"""While another one is under way."""


def moved(rank: int, step: int) -> codec.Floats:
    """What a member's own step does to the weights."""
    return np.random.default_rng((rank, step)).normal(size=SIZE).astype(np.float32)


def simulated(overlap: int, *, first_counts: bool = True, least: float = -np.inf) -> list[codec.Floats]:
    """Two members' weights after each step, float32 [2, SIZE] each. ``first_counts``: whether the first
    meeting has an effect. ``least``: a constraint."""
    at = np.zeros((2, SIZE), np.float32)
    base, momentum = at[0].copy(), np.zeros(SIZE, np.float32)
    unsent = np.zeros((2, SIZE), np.float32)
    begun: Any = None
    since, seen = 0, []

    def send() -> Any:
        wanted = at - base + unsent
        came = np.stack([codec.decode(codec.encode(each), SIZE) for each in wanted])
        return at.copy(), wanted, came

    def take(sent: Any) -> None:
        nonlocal base, momentum
        then, wanted, came = sent
        base, momentum = outer.stepped(base, momentum, outer.mean(list(came), SHARES))
        unsent[:] = wanted - came
        base = np.maximum(base, least)
        at[:] = np.maximum(base + (at - then), least)

    for step in range(STEPS):
        if begun and since == overlap:
            if first_counts:
                take(begun)
            else:
                since, first_counts = since + EVERY, True
            begun = None
        if since >= EVERY:
            begun, since = send(), 0
            if not overlap:
                take(begun)
                begun = None
        at += np.stack([moved(rank, step) for rank in range(2)])
        since += 1
        if step + 1 in FLUSHES:
            if begun:
                take(begun)
                begun = None
            take(send())
            since = 0
        seen.append(at.copy())
    return seen


def network(constraint: str | None = None) -> Any:
    import keras

    dense = keras.layers.Dense(4, use_bias=False, kernel_initializer="zeros", kernel_constraint=constraint)
    model = keras.Sequential([keras.Input((SIZE // 4,)), dense])
    model.compile("sgd", "mse")
    return model


def begun(collectives: Any, model: Any, overlap: int) -> Any:
    """A member's rounds. ``overlap``: steps that a meeting overlaps."""
    from core.trainer.exact.rare.rounds import Rounds

    class Met(Rounds):
        @property
        def overlap(self) -> int:
            return overlap

    shares = (*SHARES, 9)
    engine: Any = SimpleNamespace(collectives=collectives, rank=collectives.rank, share_numbers=shares)
    rounds = Met(engine, model, EVERY)
    rounds.prepare()
    rounds.begin()
    return rounds


def trained(collectives: Any, model: Any, overlap: int) -> tuple[list[codec.Floats], codec.Floats]:
    """A member's weights after each step, and its outer momentum."""
    from core.trainer.exact.keras import model_state

    rounds, weights, seen = begun(collectives, model, overlap), model.trainable_variables[0].value, []
    for step in range(STEPS):
        rounds.meet_if_due()
        assert rounds.left > 0
        rounds.step_begins()
        weights.assign_add(moved(collectives.rank, step).reshape(weights.shape))
        rounds.passed(1)
        if step + 1 in FLUSHES:
            rounds.flush(whole=False)
            rounds.flush(whole=False)
        seen.append(weights.numpy().ravel())
    rounds.flush(whole=True)
    seen.append(weights.numpy().ravel())
    assert rounds.meeting_s > 0 and rounds.meeting_bytes > 0
    rounds.begin()
    assert rounds.meeting_s == rounds.meeting_bytes == 0, "the next fit's"
    return seen, model_state.outer_momentum[model].numpy()


@pytest.mark.parametrize(("constraint", "least"), [(None, -np.inf), ("NonNeg", 0.0)])
@pytest.mark.parametrize("overlap", [0, 1, 2, 8])
def test_members_do_what_the_arithmetic_says(
    tmp_path: Path, overlap: int, constraint: str | None, least: float
) -> None:
    with meeting(tmp_path, 2) as exchanges:
        both = [Beside(partial(trained, each, network(constraint), overlap)) for each in members(exchanges)]
        (one, momentum), (other, others) = (each.result() for each in both)
    for step, expected in enumerate(simulated(overlap, least=least)):
        assert np.array_equal([one[step], other[step]], expected), f"after step {step + 1}"
        assert np.array_equal(one[step], other[step]) == (step + 1 in FLUSHES)
    assert np.array_equal(one[-1], other[-1]) and np.array_equal(momentum, others)


def test_a_meeting_that_a_member_leaves_has_no_effect_and_its_steps_count_at_the_next(tmp_path: Path) -> None:
    with meeting(tmp_path, 3) as exchanges:
        both = [Beside(partial(trained, each, network(), 2)) for each in members(exchanges)[:2]]
        for exchange in exchanges[:2]:
            wait_until_asked(exchange)
        for exchange in exchanges[:2]:
            exchange.regroup(1, 0, [2])
        (one, _), (other, _) = (each.result() for each in both)
    for step, each in enumerate(simulated(2, first_counts=False)):
        assert np.array_equal([one[step], other[step]], each), f"after step {step + 1}"
    assert np.array_equal(one[-1], other[-1])


def test_a_member_goes_on_although_another_has_not_come_to_the_meeting(tmp_path: Path) -> None:
    with meeting(tmp_path, 2) as exchanges:
        rounds = begun(members(exchanges)[0], network(), 2)
        rounds.step_begins()
        rounds.passed(EVERY)
        rounds.meet_if_due()
        assert rounds.left == 2
        assert exchanges[0].waiting() == []
