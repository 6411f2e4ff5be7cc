from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.history.history import History
from core.run.recorder import newest_alike, with_last_time
from core.vocabulary import wire
from core.vocabulary.answers import PlanMade, RunEntry
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Finished
from core.vocabulary.plan import Plan
from core.vocabulary.progress import Expectation, Settled, Summary
from core.vocabulary.run_folder import PLAN
from tests.core.cluster.laptops import ANNA, BEN, CLEO, NAMES, plan_of

HERE = "/home/anna/train.py"
EXPECTED = Expectation(alone_s=(0.1, 0.1), step_s=0.06, wire_s=0.01, wire_bytes=1_000_000, shares=(48, 16))
SUMMARY = Summary(
    expectation=EXPECTED, settled=Settled(step_s=0.0625, shares={ANNA: 40, BEN: 24}), samples_s=1024.0
)


class Past:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.history = History(folder)
        self.history.open()

    def ran(self, number: int, plan: Plan, summary: Summary = SUMMARY, source: str = HERE) -> None:
        plan = replace(plan, run=RunId(f"run-{number}"))
        folder = self.folder / plan.run
        folder.mkdir()
        (folder / PLAN).write_bytes(wire.to_json(plan))
        devices = tuple(member.name for member in plan.members)
        self.history.put(
            RunEntry(
                run=plan.run,
                started_s=float(number),
                script=plan.script,
                source=source,
                devices=devices,
                phase=Finished(),
                summary=summary,
            )
        )

    def newest(self, plan: Plan, source: str = HERE) -> tuple[Summary, Plan] | None:
        return newest_alike(self.history, self.folder, plan, source)


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    past = Past(tmp_path)
    yield past
    past.history.close()


def test_only_the_same_script_on_the_same_laptops_counts(past: Past) -> None:
    past.ran(1, plan_of())
    past.ran(2, plan_of((ANNA, CLEO)))
    past.ran(3, plan_of((ANNA, BEN, CLEO)))
    past.ran(4, plan_of(), source="/elsewhere/train.py")
    found = past.newest(plan_of())
    assert found is not None and found[1].run == "run-1"
    assert past.newest(plan_of((BEN, ANNA))) is not None, "whoever is the chief"
    assert past.newest(plan_of((ANNA,))) is None
    assert past.newest(plan_of(), source="/nowhere.py") is None


def test_the_newest_run_with_a_known_speed_counts(past: Past) -> None:
    past.ran(1, plan_of(), replace(SUMMARY, epochs=1))
    past.ran(2, plan_of(), replace(SUMMARY, epochs=2))
    past.ran(3, plan_of(), Summary())
    found = past.newest(plan_of())
    assert found is not None and found[0].epochs == 2


def test_a_run_whose_plan_is_gone_and_a_broken_history_say_nothing(past: Past) -> None:
    past.ran(1, plan_of())
    (past.folder / "run-1" / PLAN).unlink()
    assert past.newest(plan_of()) is None
    past.history.close()
    assert past.newest(plan_of()) is None


def test_the_last_speed_is_reported_with_todays_names_and_shares() -> None:
    made = with_last_time(PlanMade(plan=plan_of()), SUMMARY, plan_of())
    assert made.expectation == "Last time on these laptops: about 1.6× as fast as Anna's alone."
    assert (made.advice, made.last_shares) == (None, {ANNA: 40, BEN: 24})
    fixed = replace(plan_of(), balance=False)
    assert with_last_time(PlanMade(plan=fixed), SUMMARY, plan_of()).last_shares == {}
    renamed = replace(fixed, members=tuple(replace(m, name=f"new {NAMES[m.device]}") for m in fixed.members))
    assert "as new Anna's alone" in with_last_time(PlanMade(plan=renamed), SUMMARY, plan_of()).expectation


def test_advice_that_the_planned_run_already_follows_is_left_out() -> None:
    slow = replace(SUMMARY, settled=Settled(step_s=0.12, wire_s=0.07, wire_bytes=9_000_000))
    made = PlanMade(plan=plan_of())
    advice = with_last_time(made, slow, plan_of()).advice
    assert advice is not None and advice.cause == "wire" and advice.narrow is not None
    half = PlanMade(plan=replace(plan_of(), wire="bf16"))
    advice = with_last_time(half, slow, plan_of()).advice
    assert advice is not None and advice.cause == "wire" and advice.narrow is None
