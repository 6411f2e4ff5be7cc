"""Decides which member a run waits for and why: one verdict from all members' reports. Pure.

It combines what a trainer reports (``TrainerStatus``), whether its node finds its process stopped, and the
silence of a laptop that sends nothing. In a chain of members that wait for each other only the end is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.run.coordinator.state import Coordination, Draining, Heard, Running
from core.vocabulary import limits
from core.vocabulary.ids import DeviceId
from core.vocabulary.options import ASK_AFTER_S
from core.vocabulary.phases import Training
from core.vocabulary.plan import Role, Task
from core.vocabulary.waits import Cause, PeerWait, TrainerStatus, WaitsFor

QUIET_S = 3.5
"""Keep-alives come every second: a member silent for so long is not merely slow."""
FRESH_S = limits.ACTIVITY_EVERY_S + 2.0
"""How long a trainer's report is valid: by then it would have reported again, or that it goes on."""
UNTOLD_S = 5.0
"""A trainer that has reported nothing while others waited for it this long will not report soon."""

_ENDS: frozenset[Cause] = frozenset({"away", "stopped", "starting", "script"})
"""Causes that end a chain: their waiters have no cause of their own."""


@dataclass(frozen=True, slots=True)
class _Need:
    """A member needs something from a task: as seen ``age_s`` ago."""

    wait: PeerWait
    age_s: float

    @property
    def lasted_s(self) -> float:
        return self.wait.lasted_s + self.age_s


def verdicts(state: Coordination, now_s: float) -> tuple[WaitsFor, ...]:
    """One for each laptop waited for now, in the plan's order; empty: nobody is waited for."""
    needs = _needs(state, now_s)
    found: dict[DeviceId, WaitsFor] = {}
    for rank, task in enumerate(state.plan.tasks):
        if state.parts[task.device].left:
            continue
        wait = _verdict(state, task, needs.get(rank, []), now_s)
        if wait is not None and (task.device not in found or wait.cause in _ENDS):
            found[task.device] = wait
    waits = tuple(found.values())
    return tuple(wait for wait in waits if wait.cause in _ENDS) or waits or _all_in_script(state)


def self_ending_tasks(state: Coordination) -> tuple[Task, ...]:
    """The tasks that end without a stop; the others serve them until they are stopped."""
    tasks = tuple(task for task in state.plan.tasks if not state.parts[task.device].left)
    if any(task.role is Role.PS for task in tasks):
        return tasks[:1]
    return tuple(task for task in tasks if task.role is not Role.EVALUATOR)


def served(state: Coordination) -> bool:
    """Whether all tasks that end without a stop have finished."""
    ends = [state.parts[task.device].exits.get(task.name) for task in self_ending_tasks(state)]
    return all(end is not None and end.reason == "finished" for end in ends)


def may_go_on_without(state: Coordination, device: DeviceId) -> bool:
    """Whether the run can go on without this member. Only members of the exchange can be left out; the
    starter may lose its trainers while its node coordinates."""
    trains = isinstance(state.stage, Running) and isinstance(state.phase, Training)
    others = {each for each, part in state.parts.items() if part.takes_part} - {device}
    return trains and state.plan.outlasts_losses and bool(others)


def limit_s(state: Coordination, device: DeviceId) -> float:
    """How long the run waits for this member once it is away."""
    return state.plan.go_on_s if may_go_on_without(state, device) else state.plan.away_s


def bytes_come(state: Coordination) -> int:
    """Bytes received of everything that is waited for: an increase is progress."""
    return sum(peer.bytes_come for heard in state.statuses.values() for peer in heard.status.peers)


def _needs(state: Coordination, now_s: float) -> dict[int, list[_Need]]:
    found: dict[int, list[_Need]] = {}
    for _, heard in _live_statuses(state):
        for peer in heard.status.peers:
            found.setdefault(peer.rank, []).append(_Need(peer, now_s - heard.at_s))
    return found


def _live_statuses(state: Coordination) -> Iterator[tuple[Task, Heard]]:
    for task in state.plan.tasks:
        heard = state.statuses.get(task.name)
        part = state.parts[task.device]
        if heard is not None and part.away_s is None and task.name not in part.exits:
            yield task, heard


def _verdict(state: Coordination, task: Task, needs: list[_Need], now_s: float) -> WaitsFor | None:
    part, heard = state.parts[task.device], state.statuses.get(task.name)
    is_due = isinstance(state.stage, Draining) and task == state.chief and state.lacks_outputs
    if task.name in part.exits and not is_due:
        return None
    if part.away_s is not None:
        lasted_s = now_s - part.away_s
        if lasted_s < limits.MISSED_S:
            return None
        lively_s = state.last_report.progressed_s + limits.LIVELY_S - now_s
        left_s = max(0.0, limit_s(state, task.device) - lasted_s, lively_s)
        return _waits(task, "away", lasted_s, since_s=part.away_s + state.unix_offset_s, left_s=left_s)
    if is_due:
        return None  # they are coming, or being looked for
    own = heard.status if heard is not None else None
    held = own if own is not None and own.held else None
    if held is not None:
        own = None  # its node reported it; keep-alives tell whether it still holds
    if heard is not None and heard.status.stopped:
        return _waits(task, "stopped", heard.status.lasted_s + now_s - heard.at_s)
    if not needs:
        # Another has finished, and this one is still at work: the run's end waits for it.
        is_last = own is not None and own.activity != "exchange" and state.exits
        return _in_script(task, own, own.lasted_s) if is_last and own is not None else None
    lasted_s = max(need.lasted_s for need in needs)
    if part.phase in ("prepared", "starting"):
        return _waits(task, "starting", lasted_s)
    flows = any(need.wait.bytes_s > 0 for need in needs)
    if own is not None and own.activity != "exchange" and not (own.activity == "step" and flows):
        return _in_script(task, own, lasted_s)
    return _on_the_way(task, own, needs, lasted_s, held)


def _on_the_way(
    task: Task, own: TrainerStatus | None, needs: list[_Need], lasted_s: float, held: TrainerStatus | None
) -> WaitsFor | None:
    """The task is in the exchange itself, as far as anybody knows."""
    # As reported: what has come since is unknown, and an older report no longer proves silence.
    quiet = [need.wait for need in needs if need.wait.heard_s > QUIET_S and need.age_s < FRESH_S]
    if any(not wait.connected for wait in quiet):
        return _waits(task, "connection", lasted_s)
    if quiet and held is not None:
        return _in_script(task, held, lasted_s)
    if quiet:
        return _waits(task, "silent", lasted_s)
    come, total = (sum(getattr(need.wait, name) for need in needs) for name in ("bytes_come", "bytes_total"))
    rate = sum(need.wait.bytes_s for need in needs)
    if own is None and rate == 0:
        # It isn't reporting either; its interpreter may be blocked.
        return _waits(task, "script", lasted_s) if lasted_s >= UNTOLD_S else None
    left_s = (total - come) / rate if rate > 0 else None
    return _waits(task, "wire", lasted_s, bytes_come=come, bytes_total=total, left_s=left_s)


def _in_script(task: Task, own: TrainerStatus, lasted_s: float) -> WaitsFor:
    return WaitsFor(
        device=task.device,
        cause="script",
        lasted_s=lasted_s,
        activity=own.activity,
        where=own.where,
        held=own.held,
        cores=own.cores,
    )


def _all_in_script(state: Coordination) -> tuple[WaitsFor, ...]:
    """One for each laptop if all members have been in their own code for so long that the user is asked."""
    after_s = state.plan.ask_after_s or ASK_AFTER_S
    statuses = {task.name: heard.status for task, heard in _live_statuses(state)}
    busy: dict[DeviceId, WaitsFor] = {}
    for task in state.plan.tasks:
        if state.parts[task.device].left or task.name in state.parts[task.device].exits:
            continue
        own = statuses.get(task.name)
        if own is None or own.held or own.activity == "exchange" or own.lasted_s < after_s:
            return ()
        busy[task.device] = _in_script(task, own, own.lasted_s)
    return tuple(busy.values())


def _waits(
    task: Task,
    cause: Cause,
    lasted_s: float,
    *,
    bytes_come: int = 0,
    bytes_total: int = 0,
    since_s: float | None = None,
    left_s: float | None = None,
) -> WaitsFor:
    return WaitsFor(
        device=task.device,
        cause=cause,
        lasted_s=lasted_s,
        bytes_come=bytes_come,
        bytes_total=bytes_total,
        since_s=since_s,
        left_s=left_s,
    )
