"""Rounds of two members against the same arithmetic in one place, whether meetings overlap steps or not."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.trainer.exact.rare import codec, outer
from core.vocabulary.errors import TandemError
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


def begun(collectives: Any, model: Any, overlap: int, every: int = EVERY) -> Any:
    """A member's rounds. ``overlap``: steps that a meeting overlaps."""
    from core.trainer.exact.rare.rounds import Rounds

    class Met(Rounds):
        @property
        def overlap(self) -> int:
            return overlap

    shares = (*SHARES, 9)
    engine: Any = SimpleNamespace(
        collectives=collectives, rank=collectives.rank, share_numbers=shares, steps_in_epoch=None
    )
    rounds = Met(engine, model, every)
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


def sound() -> bytes:
    return codec.encode(moved(0, 0))


def reaches(collectives: Any, overlap: int, *, whole: bool) -> None:
    """A member comes to its first meeting: a flush if it is ``whole``."""
    rounds = begun(collectives, network(), overlap)
    rounds.step_begins()
    rounds.passed(EVERY)
    if whole:
        rounds.flush(whole=True)
        return
    rounds.meet_if_due()
    if overlap:
        rounds.passed(overlap)
        rounds.meet_if_due()


def sends(collectives: Any, data: bytes, overlap: int) -> Any:
    """A member brings these bytes to the same meeting."""
    if not overlap:
        return collectives.gather_bytes(data, "differences of weights")
    own = np.frombuffer(data, np.uint8)
    return collectives.end_gather(
        collectives.begin_gather(own, "differences of weights"), "that a meeting is over"
    )


@pytest.mark.parametrize(
    ("data", "code", "detail"),
    [
        (sound()[:-1], "exchange-bad-frame", f"{len(sound()) - 1} bytes for {SIZE} numbers"),
        (b"\x80\xbf" + sound()[2:], "exchange-bad-frame", "a scale out of range"),
        (sound()[:-1] + b"\x00", "exchange-bad-frame", "a number out of range"),
        (codec.encode(np.full(SIZE, 1e31, np.float32)), "weights-not-finite", ""),
        (codec.encode(np.full(SIZE, np.inf, np.float32)), "weights-not-finite", ""),
    ],
    ids=["short", "scale", "number", "overflow", "infinite"],
)
@pytest.mark.parametrize("overlap", [0, 2])
def test_what_no_sound_member_brings_to_a_meeting_is_refused_by_its_name(
    tmp_path: Path, overlap: int, data: bytes, code: str, detail: str
) -> None:
    with meeting(tmp_path, 2) as exchanges:
        anna, ben = members(exchanges)
        refuses = Beside(partial(reaches, anna, overlap, whole=False))
        sent = Beside(partial(sends, ben, data, overlap))
        refusal = refuses.result()
        sent.result()
    assert isinstance(refusal, TandemError) and refusal.code == code
    assert "ben" in refusal.problem.what and detail in refusal.problem.detail
    assert anna.failure is refusal, "even if the script catches it"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (np.zeros(SIZE - 1, "<f4").tobytes(), "exchange-bad-frame"),
        (np.full(SIZE, 1e31, "<f4").tobytes(), "weights-not-finite"),
        (np.full(SIZE, np.nan, "<f4").tobytes(), "weights-not-finite"),
    ],
    ids=["short", "overflow", "nan"],
)
def test_what_no_sound_member_brings_to_a_flush_in_float32_is_refused_by_its_name(
    tmp_path: Path, data: bytes, code: str
) -> None:
    with meeting(tmp_path, 2) as exchanges:
        anna, ben = members(exchanges)
        refuses = Beside(partial(reaches, anna, 0, whole=True))
        sent = Beside(partial(sends, ben, data, 0))
        refusal = refuses.result()
        sent.result()
    assert isinstance(refusal, TandemError) and refusal.code == code
    assert "ben" in refusal.problem.what


@pytest.mark.parametrize("value", [1e31, np.inf, np.nan])
def test_a_training_that_diverges_on_all_members_goes_on(tmp_path: Path, value: float) -> None:
    def diverges(collectives: Any) -> Any:
        model = network()
        rounds, weights = begun(collectives, model, 0), model.trainable_variables[0].value
        for whole in (False, True):
            rounds.step_begins()
            weights.assign(np.full(weights.shape, value, np.float32))
            rounds.passed(EVERY)
            rounds.flush(whole=whole)
        return weights.numpy()

    with meeting(tmp_path, 2) as exchanges:
        both = [Beside(partial(diverges, each)) for each in members(exchanges)]
        one, other = (each.result() for each in both)
    assert isinstance(one, np.ndarray), one
    assert np.array_equal(one, other, equal_nan=True) and not (np.abs(one) < codec.MOST).any()


@pytest.mark.parametrize(
    ("wire_s", "own_s", "step_s", "chosen"),
    [
        (0.001, 0.0, 0.1, 8),  # wants a meeting every tenth of a step
        (0.2, 0.105, 0.1, 30),
        (0.305, 0.0, 0.1, 30),
        (9.0, 0.5, 0.1, 64),
    ],
)
def test_meetings_are_as_rare_as_a_tenth_of_the_time_demands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wire_s: float, own_s: float, step_s: float, chosen: int
) -> None:
    """Of the times that two members measure, the longer ones count."""
    from core.trainer.exact.rare import rounds as module

    def measured(engine: Any, numbers: Any) -> Any:
        assert len(numbers) == 3 and numbers[2] == step_s, "its own times"
        return [[wire_s, own_s, step_s / 2, 0.0, 0.0, 0.0], [wire_s / 2, own_s / 2, step_s, 0.0, 0.0, 0.0]]

    monkeypatch.setattr(module, "measurements", measured)

    def rehearses(collectives: Any) -> Any:
        """The interval and the expected cost, where none is given and where one is."""
        both = [begun(collectives, network(), 0, every) for every in (0, 16)]
        return [(rounds.every, *rounds.rehearse(step_s)) for rounds in both], [each.every for each in both]

    with meeting(tmp_path, 2) as exchanges:
        found = [Beside(partial(rehearses, each)) for each in members(exchanges)]
        one, other = (each.result() for each in found)
    assert one == other
    costs, taken = one
    assert taken == [chosen, 16] and [before for before, _, _ in costs] == [16, 16]
    for (_, cost_s, sent), every in zip(costs, taken, strict=True):
        assert cost_s == pytest.approx((wire_s + own_s) / every)
        assert sent == codec.size_bytes(SIZE) // every


@pytest.mark.parametrize(
    ("steps", "chosen"),
    [
        (7, 8),  # shorter than the least interval
        (20, 10),  # two meetings, not three
        (29, 10),
        (32, 8),
        (100, 9),  # 8 would take 13 meetings
    ],
)
def test_meetings_are_spread_over_an_epoch_which_ends_with_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, chosen: int
) -> None:
    from core.trainer.exact.rare import rounds as module

    monkeypatch.setattr(module, "measurements", lambda engine, numbers: [[0.0, 0.001, 0.1, 0.0, 0.0, 0.0]])

    def rehearses(collectives: Any) -> Any:
        rounds = begun(collectives, network(), 0, 0)
        rounds._engine.steps_in_epoch = steps
        rounds.rehearse(0.1)
        return rounds.every

    with meeting(tmp_path, 2) as exchanges:
        found = [Beside(partial(rehearses, each)) for each in members(exchanges)]
        assert [each.result() for each in found] == [chosen] * 2


@pytest.mark.parametrize(
    ("overlap", "steps", "cost_s"),
    [
        (0, 32, 2 * 0.3 / 32),
        (0, 33, 3 * 0.3 / 33),  # one more for the last step
        (0, 10, 0.3 / 10),  # rarer than epochs are long
        (4, 32, (0.1 + 0.3) / 32),  # the last one overlaps nothing
        (4, None, 0.1 / 16),
    ],
)
def test_meetings_at_the_end_of_an_epoch_count_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overlap: int, steps: int | None, cost_s: float
) -> None:
    """A meeting takes 0.1 s of computing, and 0.2 s on the wire."""
    from core.trainer.exact.rare import rounds as module

    monkeypatch.setattr(module, "measurements", lambda engine, numbers: [[0.2, 0.1, 0.05, 0.0, 0.0, 0.0]])

    def rehearses(collectives: Any) -> Any:
        rounds = begun(collectives, network(), overlap, 16)
        rounds._engine.steps_in_epoch = steps
        return rounds.rehearse(0.05)[0]

    with meeting(tmp_path, 2) as exchanges:
        found = [Beside(partial(rehearses, each)) for each in members(exchanges)]
        assert [each.result() for each in found] == [pytest.approx(cost_s)] * 2
