"""Laptops are lost and come back in any order: invariants of returns and of stand-ins that always hold."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.vocabulary.errors import LEFT_RUN, Problem, TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Failed, Stopped
from tests.core.cluster.laptops import ANNA, BEN, CLEO
from tests.core.run.neighbours import House, JumpingLoop, Run
from tests.core.run.world import failing

LEFT = Problem(code=LEFT_RUN, what="it left")
ORDERS, SOME = 100_000, 300
FOUND = (425,)
"""Orders in which a fault showed that no other test has."""
MOST_STEPS, MOST_TURNS = 40, 3000
WAITS_S = (0.5, 5.0, 30.0, 120.0)
Move = Callable[[], Any]


def test_laptops_that_are_lost_and_come_back_in_any_order_end_in_one_run() -> None:
    for seed in (*range(SOME), *FOUND):
        order(seed)


@pytest.mark.complete
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_orders_of_losses_and_returns_end_in_one_run() -> None:
    for seed in range(SOME, ORDERS):
        order(seed)


def order(seed: int) -> None:
    loop = JumpingLoop()
    try:
        loop.run_until_complete(_order(loop, random.Random(seed)))
    except BaseException as error:
        error.add_note(f"seed {seed}")
        raise
    finally:
        loop.close()


async def _order(loop: JumpingLoop, any_of: random.Random) -> None:
    house = House(loop)
    run = house.train(*any_of.choice([(ANNA, BEN, CLEO), (ANNA, BEN), (BEN, ANNA, CLEO)]))
    run.settle()
    for _ in range(3):
        for device, task in run.living:
            run.trainer_goes_on(device, task)
        run.settle()
    await settle(house)
    asked: set[str] = set()
    for _ in range(any_of.randrange(MOST_STEPS)):
        what, move = any_of.choice(choices(house, any_of))
        asked.add(what)
        if (waits := move()) is not None:
            await waits
        await settle(house)
    for pair in tuple(house.broken):
        house.mend(*pair)
    await drain(house)
    led = [each for each in house.runs if each.is_led]
    # Nobody takes back what the starter has ended before it crashed.
    has_ended = any(each.me == ANNA and each.over and ANNA not in goes_on(each) for each in house.runs)
    is_excused = has_ended and "crash" in asked
    assert len(led) <= 1 or is_excused, "two halves go on side by side"
    if not asked & {"stop", "leave", "crash"} and (led or "kill" not in asked):
        for number, run in enumerate(house.runs):
            for device in goes_on(run):
                is_in_one = any(device in later.members for later in house.runs[number + 1 :])
                is_told = any("did not ask this laptop" in what for what in house.nodes[device].notices)
                is_odd = any(map(asked_itself_in_vain, house.runs[number + 1 :]))
                assert is_in_one or is_told or is_odd, f"nothing went on after {run.run}"
    assert {each for each in house.runs if each.living} <= {*led}, "a trainer outlives its run"

    before = len(house.runs)
    for each in led:
        each.tell(co.StopWanted("Anna's", 0))
    await drain(house)
    assert len(house.runs) == before, "a stopped training went on"
    for node in house.nodes.values():
        assert not node.busy and node.returns.invitation is None and not node.background
    for each in house.runs:
        assert not each.living
        assert len(each.last_phases()) == 1 or (each.me in each.dead and not each.last_phases())
    house.close()
    await settle(house)


def goes_on(run: Run) -> Iterator[DeviceId]:
    """Whose screen says that the training goes on in another run."""
    shown = {run.me: run.events} | {each: side.shown for each, side in run.members.items() if each != run.me}
    for device, events in shown.items():
        if any(isinstance(phase, Stopped) and phase.goes_on for phase in run.last_phases(events)):
            yield device


def asked_itself_in_vain(run: Run) -> bool:
    """Only here can minutes pass before a laptop's question to itself arrives."""
    ends = run.last_phases()
    return [*run.members] == [run.me] and any(
        isinstance(end, Failed) and end.problem.code == "no-consent" for end in ends
    )


def choices(house: House, any_of: random.Random) -> list[tuple[str, Move]]:
    """Something of each kind that could happen next."""
    found: list[tuple[str, Move]] = [("time", partial(asyncio.sleep, any_of.choice(WAITS_S)))]

    def add(what: str, moves: list[Move], times: int = 1) -> None:
        if moves:
            found.extend([(what, any_of.choice(moves))] * times)

    for run in house.runs:
        if not run.is_led and not any(map(run.takes_part, run.members)):
            continue
        add("message", list(run.possible()), 2)
        add("all messages", [run.settle] if run.possible() else [], 2)
        add("report", [partial(run.trainer_goes_on, *each) for each in run.living], 2)
        add("obey", [partial(run.trainer_obeys, *each) for each in asked_to_end(run)], 2)
        add("kill", [partial(run.trainer_ends, *each, failing("killed")) for each in run.living])
        add("limit", [partial(run.fire, wait) for wait in run.waits])
        limits = [(device, wait) for device, side in run.members.items() for wait in side.waits]
        add("limit", [partial(run.fire_member, *each) for each in limits])
        if any_of.random() < 0.2:
            add("stop", [partial(run.tell, co.StopWanted("Anna's", 0))])
            here = [device for device in run.members if run.takes_part(device)]
            add("leave", [partial(run.tell_member, device, pa.LeaveWanted(LEFT)) for device in here])
        if run.is_led:
            add("add", [partial(add_others, run)])
    whole = [pair for pair in house.pairs if pair not in house.broken]
    add("lose", [partial(house.lose, *pair) for pair in whole])
    add("mend", [partial(house.mend, *pair) for pair in house.broken], 2)
    add("crash", [partial(house.crash, device, go_on=on) for device in house.nodes for on in (True, False)])
    return found


def add_others(run: Run) -> None:
    others = tuple(device for device in run.house.nodes if device != run.me)
    with suppress(TandemError):  # one is not connected
        run.house.nodes[run.me].returns.add(run.run, others)


def asked_to_end(run: Run) -> list[tuple[DeviceId, str]]:
    return [(device, task) for device, task in run.living if run.members[device].trainers[task] >= 0]


async def settle(house: House) -> None:
    await house.loop.settle()
    house.tell_who_is_busy()
    await house.loop.settle()
    assert not house.crashes, house.crashes
    for device in house.nodes:
        assert sum(run.me == device and run.is_led for run in house.runs) <= 1
        assert sum(run.takes_part(device) for run in house.runs) <= 1
        assert sum(any(each == device for each, _ in run.living) for run in house.runs) <= 1


async def drain(house: House) -> None:
    """Nothing more happens from outside: messages arrive, trainers do as they are told, and time passes."""
    for _ in range(MOST_TURNS):
        await settle(house)
        if (move := next_move(house)) is not None:
            move()
        elif (wait_s := house.loop.next_s()) is not None:
            await asyncio.sleep(wait_s)
        else:
            return
    raise AssertionError("it never comes to an end")


def next_move(house: House) -> Move | None:
    for run in house.runs:
        if moves := run.possible():
            return moves[0]
        if ending := asked_to_end(run):
            return lambda: run.trainer_obeys(*ending[0])
        for device, task in run.living:
            if run.steps[device] < 3:
                return lambda: run.trainer_goes_on(device, task)
    for run in house.runs:
        if limits := [wait for wait in run.waits if wait != "look"]:
            return lambda: run.fire(limits[0])
        for device, side in run.members.items():
            if waits := [wait for wait in side.waits if wait != "look"]:
                return lambda: run.fire_member(device, waits[0])
    return None
