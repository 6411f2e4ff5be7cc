"""Checks measurements from other laptops for plausibility before screens and files rely on them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from core.vocabulary.laptops import LaptopUsed
from core.vocabulary.plan import Moment, Plan, ranks
from core.vocabulary.progress import Expectation, Settled, Summary
from core.vocabulary.waits import TrainerStatus, WaitsFor

SHORTEST_S, LONGEST_S = 1e-9, 1e7
"""Bounds of a step's time; ratios of such times stay presentable."""
MOST = 1e15
"""Bound of all other numbers."""
LONGEST_RUN_S = 1e9
"""Bound of a run's time: 30 years."""
LATEST_S = 2.0**32
"""Bound of a Unix time: in the year 2106."""
LONGEST_PLACE = 400
"""Characters of a place in a script: its path, line, and function."""


def sound(expectation: Expectation, plan: Plan) -> bool:
    """Whether there is a number for each rank, with plausible step times and shares that are not all 0."""
    count, (low_s, high_s) = len(ranks(plan)), step_range(expectation)
    return (
        len(expectation.alone_s) == len(expectation.shares) == count
        and len(expectation.step_range_s) in (0, 2)
        and len(expectation.computing_s) in (0, 2)
        and all(map(is_step_time, (*expectation.alone_s, *expectation.computing_s)))
        and all(map(is_step_time, (expectation.step_s, low_s, high_s)))
        and low_s <= expectation.step_s <= high_s
        and _fits(expectation.wire_s)
        and _fits(expectation.wire_bytes)
        and _fits(expectation.audit_bytes)
        and all(share >= 0 for share in expectation.shares)
        and any(expectation.shares)
    )


def step_range(expectation: Expectation) -> tuple[float, float]:
    """The shortest and the longest time expected of a step, in seconds."""
    known = expectation.step_range_s
    return (known[0], known[1]) if len(known) == 2 else (expectation.step_s, expectation.step_s)


def sound_summary(summary: Summary, plan: Plan) -> bool:
    """Checks the measured parts; the rest is only shown."""
    expectation, settled = summary.expectation, summary.settled
    return (expectation is None or sound(expectation, plan)) and (settled is None or _sound(settled, plan))


def _sound(settled: Settled, plan: Plan) -> bool:
    numbers = (settled.samples_s, settled.wire_s, settled.wire_bytes)
    return (
        is_step_time(settled.step_s)
        and all(each is None or _fits(each) for each in numbers)
        and set(settled.shares) <= {member.device for member in plan.members}
        and all(share >= 0 for share in settled.shares.values())
    )


def sound_status(status: TrainerStatus, plan: Plan) -> bool:
    """Checks what a trainer, perhaps on another laptop, reports of its activity and waits."""
    waits = status.peers
    numbers = [status.lasted_s, status.cores]
    for wait in waits:
        numbers += [wait.lasted_s, wait.bytes_come, wait.bytes_total, wait.bytes_s, wait.heard_s]
    known = {wait.rank for wait in waits} <= set(range(len(plan.tasks)))
    return (
        known
        and len(waits) <= len(plan.tasks)
        and len(status.where) <= LONGEST_PLACE
        and all(map(_fits, numbers))
    )


def sound_waits(waits: Sequence[WaitsFor], plan: Plan) -> bool:
    """Checks another laptop's report of the members waited for."""
    numbers = [
        number
        for wait in waits
        for number in (
            wait.lasted_s,
            wait.cores,
            wait.bytes_come,
            wait.bytes_total,
            wait.left_s or 0.0,
            wait.since_s or 0.0,
        )
    ]
    devices = [wait.device for wait in waits]
    return (
        len(set(devices)) == len(devices)
        and set(devices) <= {member.device for member in plan.members} | {plan.starter}
        and all(len(wait.where) <= LONGEST_PLACE and (wait.since_s or 0.0) <= LATEST_S for wait in waits)
        and all(map(_fits, numbers))
    )


def sound_moment(moment: Moment) -> bool:
    """Whether it is a possible position in a training."""
    return all(_fits(each) for each in (*moment.order, moment.epochs, moment.steps_in_epoch or 0))


def sound_use(used: LaptopUsed) -> bool:
    """Whether it is a possible load, at a possible Unix time."""
    return 0 <= used.second <= LATEST_S and _fits(used.cpu_pct) and _fits(used.gpu_pct or 0.0)


def is_run_time(seconds: float) -> bool:
    """Whether it is a possible duration of a run."""
    return 0 <= seconds <= LONGEST_RUN_S


def is_step_time(seconds: float) -> bool:
    """Whether it is a possible duration of a step."""
    return SHORTEST_S <= seconds <= LONGEST_S


def _fits(number: float) -> bool:
    return 0 <= number <= MOST
