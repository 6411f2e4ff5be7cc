"""Budgets for one device's messages: an honest run never reaches them, and a flood costs this laptop
little."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from core.link import problems
from core.link.budgets import BUDGETS, TOLD_LEFT_OUT, Allowance, Kind, kind_of
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message
from core.vocabulary.progress import LogLines, Progress, Summary
from tests.core.link.examples import reading

RUN, BEN = RunId("run"), DeviceId("b" * 64)
STEP = ms.EventTold(
    event=ev.MemberProgressed(
        run=RUN, device=BEN, progress=Progress(at_s=1.0, epoch=0, epochs=1, step=1, batch=1)
    )
)
READING = ms.TelemetrySent(reading=reading())
WORDS = ms.EventTold(event=ev.MemberPhaseChanged(run=RUN, device=BEN, phase="training", words="x"))


def output(text: str) -> ms.EventTold:
    lines = LogLines(task="worker:0", stream="stdout", text=text)
    return ms.EventTold(event=ev.MemberLogged(run=RUN, device=BEN, lines=lines))


def said(
    messages: Iterable[Message], allowance: Allowance, now_s: float = 0.0
) -> tuple[int, float, list[Kind]]:
    """How many messages were accepted, when the last was read, and which."""
    taken, told = 0, list[Kind]()
    for message in messages:
        ruling = allowance.charge(message, now_s)
        taken += not ruling.left_out
        now_s += ruling.pause_s
        if ruling.told is not None:
            told.append(ruling.told)
    return taken, now_s, told


def test_a_run_of_sixteen_laptops_that_print_all_the_time_meets_no_budget() -> None:
    allowance = Allowance()
    each_second: list[Message] = [
        READING,
        *[STEP] * 160,
        *[output("x" * 2_000)] * 320,
        *[WORDS] * 16,
    ]
    for second in range(120):
        assert said(each_second, allowance, float(second)) == (len(each_second), float(second), [])


@pytest.mark.parametrize(
    ("message", "kind", "counts"),
    [(READING, "readings", 1), (STEP, "steps", 1), (output("x" * 20_000), "output", 3)],
)
def test_a_flood_of_replaceable_reports_is_thinned_and_that_is_reported_once(
    message: Message, kind: Kind, counts: int
) -> None:
    taken, until_s, told = said([message] * 100_000, Allowance())
    burst, cost = BUDGETS[kind].burst, kind_of(message)[1]
    assert burst / cost <= taken <= (burst + BUDGETS[kind].rate_s * until_s) / cost + 1
    assert until_s == pytest.approx((100_000 * counts - 6_000) / 1_000, rel=0.01), "the rest is read slowly"
    assert sorted(told) == sorted([kind, "messages"])


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (WORDS, "events"),
        (ms.EventTold(event=ev.RunSummarised(run=RUN, summary=Summary())), "changes"),
        (ms.ModulesAsked(question=1, modules=()), "questions"),
    ],
)
def test_other_messages_are_never_dropped_but_a_flood_is_read_slowly(message: Message, kind: Kind) -> None:
    budget = BUDGETS[kind]
    count = int(budget.burst) + 2_000
    taken, until_s, told = said([message] * count, Allowance())
    assert taken == count
    assert until_s == pytest.approx(2_000 / budget.rate_s, rel=0.01)
    assert told == [kind]


def test_messages_of_long_ago_no_longer_count() -> None:
    allowance = Allowance()
    said([READING] * 100, allowance)
    assert said([READING] * 50, allowance, 60.0)[0] == 50


def test_an_excess_names_the_device_and_the_consequence() -> None:
    assert str(problems.excess("ben", "steps")).startswith(
        "ben sends more steps of a training than any normal"
    )
    assert "drops most of them" in problems.excess("ben", "readings").what
    assert "reads them slowly" in problems.excess("ben", "questions").what
    assert BUDGETS["steps"].burst > TOLD_LEFT_OUT
