"""How a run ends: finished, stopped or failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from core.run import problems
from core.run.coordinator import state as co
from core.run.coordinator import verdicts
from core.run.turn import CoordinatorTurn
from core.speed.summary import summary
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Exit, Failed, Finished, Phase, Starting, Stopped, Stopping, Training
from core.vocabulary.plan import Plan
from core.vocabulary.plausible import sound_summary

_ERROR = re.compile(r"(\w+): .* (\(.+, line \d+\))\.", re.DOTALL)
"""``FileNotFoundError: … (train.py, line 12).``"""


def on_met(turn: CoordinatorTurn) -> None:
    """Some member's trainers have connected to the others, or have ended."""
    if all(part.phase in ("training", "ended") for part in turn.state.parts.values()):
        turn.cancel("start")
        if turn.state.plan.strategy == "own":
            # a custom training loop need not report steps: all that is known is that it runs
            on_first_step(turn)


def on_first_step(turn: CoordinatorTurn) -> None:
    if isinstance(turn.state.phase, Starting) and not isinstance(turn.state.stage, co.Ending):
        turn.cancel("start")
        turn.show(Training())


# --- towards the end ---------------------------------------------------------------------------------------


def check_for_end(turn: CoordinatorTurn) -> None:
    """Check whether the run's end is reached, or what has to happen before."""
    state = turn.state
    match state.stage:
        case co.Ending() if state.all_ended():
            conclude(turn)
        case co.Failing(cause, weak) if state.all_ended():
            abandon(turn, cause, cause=cause, weak=weak)
        case co.Keeping(cause) if not _may_keep(state):
            abandon(turn, cause, cause=cause)
        case co.Draining() if state.outputs == "here":
            conclude(turn)
        case co.Running() | co.Releasing() | co.Halting() if state.all_ended():
            drain(turn)
        case co.Halting(force=0, by=by) if _have_self_ending_tasks_ended(state):
            stop(turn, by, 1)  # a ps or evaluator has no step boundary to stop at
        case co.Running() if state.exits:
            on_met(turn)
            if verdicts.served(state):
                release(turn, 1)
            elif "finish" not in state.waits and not (state.plan.redials or state.is_any_away):
                turn.wait("finish", limits.FINISH_S)
        case co.Releasing():
            on_met(turn)


def drain(turn: CoordinatorTurn) -> None:
    turn.cancel("start", "finish", "stop")
    if turn.state.outputs == "here":
        conclude(turn)
        return
    stage = turn.state.stage
    turn.enter(co.Draining(stage if isinstance(stage, co.Halting) else None))
    if turn.state.parts[turn.state.chief.device].away_s is None:  # otherwise "away" is its limit
        turn.wait("outputs", limits.OUTPUTS_S)


def release(turn: CoordinatorTurn, force: int) -> None:
    """Tasks that serve others (ps, evaluator) never end without a stop."""
    turn.enter(co.Releasing(force))
    turn.wait("finish", limits.STOP_S[force])
    ask_to_stop(turn, force)


def ask_to_stop(turn: CoordinatorTurn, force: int) -> None:
    for device in turn.state.unfinished():
        turn.send(device, ms.StopAsked(run=turn.state.plan.run, force=force))


# --- stopped -----------------------------------------------------------------------------------------------


def stop(turn: CoordinatorTurn, by: str, force: int) -> None:
    force = min(force, 2)
    if force < turn.state.next_force:
        return
    match turn.state.stage:
        case co.Assembling() | co.Draining():
            abandon(turn, problems.stopped_by(by), by=by)
        case co.Failing(cause, weak):
            abandon(turn, cause, cause=cause, weak=weak, by=by)
        case co.Keeping(cause):
            abandon(turn, cause, cause=cause, weak=True, by=by)
        case co.Running() | co.Releasing() | co.Halting():
            if isinstance(turn.state.phase, Starting):
                force = max(force, limits.STOP_WHILE_STARTING)
            first = turn.state.stopped_by
            turn.enter(co.Halting(force, by if first is None else first))
            turn.cancel("start", "finish")
            if not isinstance(turn.state.phase, Stopping):
                turn.show(Stopping(back=turn.state.back or ()))
            turn.wait("stop", limits.STOP_S[force])
            ask_to_stop(turn, force)


def on_stop_too_slow(turn: CoordinatorTurn, halting: co.Halting) -> None:
    if halting.force >= 2:
        abandon(turn, problems.stopped_by(halting.by))
        return
    names = [turn.state.name(device) for device in turn.state.unfinished()]
    turn.log(problems.slow_to_stop(names, limits.STOP_S[halting.force], halting.force + 1))
    stop(turn, halting.by, halting.force + 1)


def close(turn: CoordinatorTurn, by: str, why: Problem | None = None) -> None:
    """The user of a laptop leaves the run. ``why``: None where Tandem is being closed there."""
    why = why or problems.closed(by)
    match turn.state.stage:
        case co.Ending() as ending:
            turn.enter(replace(ending, by=by if ending.by is None else ending.by))
        case co.Failing(cause, weak):
            abandon(turn, why, cause=cause, weak=weak, by=by)
        case co.Keeping(cause):
            abandon(turn, why, cause=cause, weak=True, by=by)
        case _:
            abandon(turn, why, by=by)


# --- failed ------------------------------------------------------------------------------------------------


def fail(turn: CoordinatorTurn, problem: Problem, *, weak: bool = False) -> None:
    """Note a cause. A better one may replace a weak one for a moment; then everything ends."""
    match turn.state.stage:
        case co.Ending(cause=cause, weak=replaceable) as ending:
            if cause is None or (replaceable and not weak):
                turn.enter(replace(ending, cause=problem, weak=weak))
        case co.Keeping():
            check_for_end(turn)
        case co.Failing(weak=replaceable) if weak or not replaceable:
            pass
        case _ if weak:
            turn.enter(co.Failing(problem))
            turn.cancel("start", "finish")
            turn.wait("cause", limits.CAUSE_S)
        case _:
            abandon(turn, problem, cause=problem)


def fail_with_script(turn: CoordinatorTurn, problem: Problem, device: DeviceId) -> None:
    """The script on ``device`` failed: before the first step see whether it fails everywhere; later save what
    was trained until then, before everything ends."""
    chief = turn.state.chief
    starts = isinstance(turn.state.stage, co.Running) and isinstance(turn.state.phase, Starting)
    if starts and turn.state.unfinished() and problem.code not in problems.OF_ALL:
        turn.enter(co.Failing(problem, weak=False))
        turn.cancel("start", "finish")
        turn.wait("cause", limits.SAME_FAULT_S)
        return
    if not isinstance(turn.state.stage, co.Running) or device == chief.device or not _may_keep(turn.state):
        fail(turn, problem)
        return
    turn.enter(co.Keeping(problem))
    turn.cancel("start", "finish")
    turn.wait("cause", limits.STOP_S[0])  # it may be in a long step or callback
    turn.log(f"{problem.what} {turn.state.name(chief.device)} saves the weights before the run ends.")
    turn.send(chief.device, ms.StopAsked(run=turn.state.plan.run, force=0))


def _have_self_ending_tasks_ended(state: co.Coordination) -> bool:
    return all(task.name in state.parts[task.device].exits for task in verdicts.self_ending_tasks(state))


def _may_keep(state: co.Coordination) -> bool:
    """Whether the chief's trainer runs, and has weights worth saving."""
    chief = state.chief
    part = state.parts[chief.device]
    trains = isinstance(state.phase, Training) and state.plan.strategy == "managed"
    return trains and part.takes_part and part.away_s is None and chief.name not in part.exits


def outputs_lost(turn: CoordinatorTurn, why: Problem | None = None) -> None:
    problem = problems.outputs_missing(turn.state.name(turn.state.chief.device), why)
    if turn.state.stopped_by is None:
        fail(turn, problem)
        return
    turn.log(str(problem))
    if not isinstance(turn.state.stage, co.Ending):
        abandon(turn, problem)


# --- over --------------------------------------------------------------------------------------------------


def abandon(
    turn: CoordinatorTurn,
    problem: Problem,
    *,
    cause: Problem | None = None,
    weak: bool = False,
    by: str | None = None,
) -> None:
    """End every member's part now because of ``problem``; the rest as in ``Ending``."""
    launched = not isinstance(turn.state.stage, co.Assembling)
    first = turn.state.stopped_by
    turn.enter(co.Ending(cause, weak, by if first is None else first))
    turn.cancel(*turn.state.waits)
    for device, part in turn.state.parts.items():
        if part.away_s is not None:  # it learns of the end when it comes back
            turn.update_part(device, replace(part, away_s=None, takes_part=False))
    for device in turn.state.parts:
        turn.send(device, ms.RunAbandoned(run=turn.state.plan.run, problem=problem))
    if launched and not turn.state.all_ended():
        # A killed laptop is known to be lost only once its link has been silent; a cut shows sooner.
        is_for_link = weak and cause is not None and not turn.state.plan.redials
        turn.wait("end", limits.END_LINK_S if is_for_link else limits.END_S)
    else:
        conclude(turn)


def conclude(turn: CoordinatorTurn) -> None:
    state = turn.state
    turn.cancel(*state.waits)
    phase: Phase
    match state.stage:
        case co.Ending(cause=Problem() as cause):
            alike = _of_all(state.plan, state.exits)
            if state.left_out and alike is None:
                turn.log(str(cause))
                phase = Stopped(by=problems.starter_of(state.plan), goes_on=True)
            else:
                phase = Failed(problem=alike or cause)
        case _ if state.stopped_by is not None:
            back = state.back
            phase = Stopped(by=state.stopped_by, goes_on=back is not None, back=back or ())
        case _ if weights_differ(turn):
            phase = Failed(problem=problems.unequal_weights())
        case _:
            phase = Finished()
            log_if_nothing_shared(turn)
    turn.enter(co.Over())
    out = summary(turn.state.tally, turn.now_s)
    out = structs.replace(out, started_s=state.unix_offset_s + state.tally.pressed_s)
    if not sound_summary(out, state.plan):
        # A member's implausible numbers must not cost the rest of the summary.
        out = structs.replace(out, expectation=None, settled=None)
    turn.share(ev.RunSummarised(run=state.plan.run, summary=out))
    turn.show(phase)
    turn.effects.append(co.Finish())


def _of_all(plan: Plan, exits: Sequence[Exit]) -> Problem | None:
    """The problem that ended every trainer alike, and so is no single laptop's; None: there is none."""
    own = [end.problem for end in exits if end.problem is not None and end.reason in problems.OWN_FAULTS]
    alike = len({(problem.code, *_raised(problem.what)) for problem in own}) == 1
    return own[0] if alike and len(own) == len(plan.tasks) > 1 else None


def _raised(what: str) -> tuple[str, ...]:
    """An error's kind and place: its text may name a folder that has another path on each laptop."""
    found = _ERROR.fullmatch(what)
    return (what,) if found is None else found.groups()


def log_if_nothing_shared(turn: CoordinatorTurn) -> None:
    if not turn.state.plan.solo and not any(end.shared for end in turn.state.exits):
        turn.log(problems.nothing_shared())


def weights_differ(turn: CoordinatorTurn) -> bool:
    """Whether members that keep their weights equal ended with different ones."""
    plan = turn.state.plan
    weights = {end.weights_sha256 for end in turn.state.exits if end.weights_sha256}
    return plan.strategy == "managed" and not plan.solo and len(weights) > 1
