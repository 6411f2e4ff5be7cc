"""Whether this laptop can leave the run under way, over links in memory; and for its battery."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.run import departure
from core.vocabulary import events as ev
from core.vocabulary import trainer_messages
from core.vocabulary.errors import LEFT_RUN, TandemError
from core.vocabulary.phases import Starting, Stopping, Training
from core.vocabulary.plan import RunSpec
from core.vocabulary.readings import Reading
from core.vocabulary.state import MemberState, Run
from tests.core.cluster.laptops import ANNA, BEN, CLEO, plan_of
from tests.core.run.lan import Lan, LanNode
from tests.core.run.test_returns import QUICK, finish, goes_on_with, left, nodes, run_of, said, train
from tests.core.run.world import failing


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Lan]:
    async with Lan(tmp_path, ("Anna", "Ben", "Cleo"), QUICK, tells_busy=True) as lan:
        yield lan


def on_battery(percent: float | None) -> Reading:
    return Reading(
        at_s=1.0,
        cpu_pct=1.0,
        memory_used_bytes=1,
        memory_total_bytes=2,
        sent_bytes_s=0.0,
        received_bytes_s=0.0,
        battery_pct=percent,
    )


async def ends_its_step(lan: Lan, node: LanNode) -> None:
    """Its trainer gets the order to leave, and does."""
    await lan.wait_until(lambda: node.trainers[-1].orders == [trainer_messages.Stop(leaves=True)])
    node.trainers[-1].end(failing("killed"))


def run_now(node: LanNode) -> Run:
    assert node.state.run is not None
    return node.state.run


async def test_a_laptop_that_left_comes_back_only_when_it_is_added(three: Lan, spec: RunSpec) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    ben.runs.departure.leave(run)
    await ends_its_step(three, ben)
    await three.wait_until(lambda: all(left(node, ben) for node in (anna, ben, cleo)))
    for node in (anna, ben, cleo):
        why = run_now(node).members[ben.device].left
        assert why is not None and (why.code, why.what) == (LEFT_RUN, "Ben left the run.")
    three.clock.advance(3600.0)
    assert run_of(anna) == run and not anna.trainers[-1].forces
    with pytest.raises(TandemError, match="has left the run already"):
        ben.runs.departure.leave(run)
    anna.runs.returns.add(run, (ben.device,))
    await goes_on_with(three, run, anna, ben, cleo)
    await finish(three, anna, ben, cleo)


async def test_the_starter_leaves_and_comes_back_with_the_next_that_the_user_adds(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    run = await train(three, spec, anna, ben, cleo)
    anna.runs.departure.leave(run)
    await ends_its_step(three, anna)
    await three.wait_until(lambda: left(ben, anna))
    assert run_now(cleo).chief.device == ben.device
    ben.trainers[-1].end(failing("killed"))
    await three.wait_until(lambda: left(cleo, ben))
    three.clock.advance(3600.0)
    assert run_of(cleo) == run, "it would bring anna back, who left"
    anna.runs.returns.add(run, (ben.device,))
    await goes_on_with(three, run, anna, ben, cleo)
    await finish(three, anna, ben, cleo)


async def test_a_low_battery_makes_the_laptop_leave_once_and_names_the_charge(
    three: Lan, spec: RunSpec
) -> None:
    anna, ben, cleo = nodes(three)
    await train(three, spec, anna, ben, cleo)
    for percent, below in ((None, 95), (14.0, 0), (15.0, 15)):
        assert ben.runs.departure.on_reading(on_battery(percent), below) is None
        assert not ben.trainers[-1].orders
    for percent in (14.2, 13.0):
        assert ben.runs.departure.on_reading(on_battery(percent), 15) is None
    await ends_its_step(three, ben)
    await three.wait_until(lambda: left(anna, ben))
    assert "Ben left the run: its battery is at 14 %. Anna and Cleo go on" in said(anna)
    await finish(three, anna, cleo)


async def test_a_low_battery_that_cannot_leave_is_reported_once(three: Lan, spec: RunSpec) -> None:
    anna, ben, _ = nodes(three)
    await train(three, replace(spec, solo=True), anna)
    problem = anna.runs.departure.on_reading(on_battery(9.0), 15)
    assert problem is not None and "battery is at 9 %" in problem.what and problem.fix.startswith("Plug")
    assert anna.runs.departure.on_reading(on_battery(8.0), 15) is None
    assert ben.runs.departure.on_reading(on_battery(8.0), 15) is None, "it is in no run"
    await finish(three, anna)


def test_a_run_that_cannot_go_on_without_this_laptop_says_so() -> None:
    plan = plan_of((ANNA, BEN, CLEO))
    members = {member.device: MemberState() for member in plan.members}
    run = Run(plan=plan, phase=Training(), members=members)
    gone = replace(members[CLEO], left=departure.left("cleo"))
    assert departure.takes_part(run, BEN) and departure.why_not(run, BEN) is None
    assert departure.why_not(None, BEN) is not None
    for cannot, words in (
        (replace(run, phase=Starting()), "before the first step"),
        (replace(run, phase=Stopping()), "is being stopped"),
        (replace(run, plan=replace(plan, strategy="own")), "trains in its own way"),
        (replace(run, members={**members, ANNA: gone, CLEO: gone}), "No other laptop"),
        (replace(run, members={**members, BEN: gone}), "left the run already"),
    ):
        why = departure.why_not(cannot, BEN)
        assert why is not None and why.code == departure.CANNOT and words in why.what


def test_events_name_the_departure_with_its_reason() -> None:
    problem = departure.left("ben", "its battery is at 14 %")
    assert problem.what == "ben left the run: its battery is at 14 %."
    assert isinstance(ev.MemberLeft(run=plan_of().run, device=BEN, problem=problem).problem.fix, str)
