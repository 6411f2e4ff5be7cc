"""Removes a lost member from the run; the others go on from the same step. Pure."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from core.run import problems
from core.run.coordinator import patience, verdicts
from core.run.coordinator import state as co
from core.run.coordinator.ending import abandon, check_for_end, close, fail, outputs_lost, stop
from core.run.turn import CoordinatorTurn
from core.supervisor.problems import LEFT
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import BY_A_USER, GOES_BACK, LEFT_RUN, Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.phases import Exit, ExitReason, Training

_LOSSES: frozenset[ExitReason] = frozenset({"killed", "out-of-memory", "stopped"})
"""Exits that are not the fault of the script or any other member."""


def is_loss(end: Exit) -> bool:
    """Whether a trainer's end was a loss that nobody requested."""
    return end.reason in _LOSSES and (end.problem is None or end.problem.code != LEFT)


def is_failure(state: co.Coordination, end: Exit, task: str) -> bool:
    """Whether a trainer's end is a failure of the run, in the run's present stage."""
    if end.reason == "finished":
        return False
    match state.stage:
        case co.Ending(cause=cause):
            # A killed trainer says nothing; a fault of its own may still be the better cause.
            return cause is not None and end.reason in problems.OWN_FAULTS
        case co.Halting(force=force):
            return force == 0 and end.reason in problems.OWN_FAULTS
    return not (
        verdicts.served(state) and task not in {each.name for each in verdicts.self_ending_tasks(state)}
    )


def lose(turn: CoordinatorTurn, device: DeviceId, why: Problem) -> bool:
    """Go on without a member whose trainer is lost. False: the run fails."""
    if verdicts.may_go_on_without(turn.state, device):
        go_on_without(turn, device, why)
        return True
    if why.code == LEFT_RUN:  # the others left at the same moment
        close(turn, turn.state.name(device), why)
        return True
    return False


def go_on_without(turn: CoordinatorTurn, device: DeviceId, why: Problem) -> None:
    """``why``: what happened to it, in words that hold on every laptop."""
    run, plan = turn.state.plan.run, turn.state.plan
    own = {task.name for task in plan.tasks_of(device)}
    statuses = {task: heard for task, heard in turn.state.statuses.items() if task not in own}
    turn.state = replace(turn.state, statuses=MappingProxyType(statuses))
    part = turn.state.parts[device]
    turn.update_part(device, replace(part, left=True, takes_part=False, away_s=None, phase="ended"))
    turn.share(ev.MemberLeft(run=run, device=device, problem=why))
    parts = turn.state.parts
    gone = tuple(each for each, part in parts.items() if part.left)
    others = [each for each, part in parts.items() if not part.left]
    for each in parts:
        turn.send(each, ms.GoOnWithout(run=run, generation=plan.generation + len(gone), gone=gone))
    step = turn.state.tally.known.left[device]
    turn.log(problems.left(turn.state.name(device), why, [turn.state.name(each) for each in others], step))
    if not turn.state.is_any_away:
        turn.cancel("away")
    patience.note_progress(turn)
    patience.update_verdicts(turn)
    check_for_end(turn)


def go_back(turn: CoordinatorTurn, device: DeviceId, end: Exit) -> bool:
    """Whether a trainer ended to be resumed from an earlier checkpoint. The run follows the chief's."""
    state, why = turn.state, end.problem
    if end.reason != "stopped" or why is None or why.code != GOES_BACK:
        return False
    if device == state.chief.device and state.back is None and isinstance(state.stage, co.Running):
        turn.log(str(why))
        turn.state = replace(state, back=())
        stop(turn, problems.starter_of(state.plan), 0)
    return True


def stop_for(turn: CoordinatorTurn, goes_on: co.GoesOn) -> None:
    """Stop at the end of a step, to go on with returned or new laptops. Not while a member is unable to stop,
    unless another laptop goes on."""
    state = turn.state
    trains = isinstance(state.stage, co.Running) and isinstance(state.phase, Training)
    force = 1 if state.is_any_away else patience.least_force(turn)
    before_its_end = isinstance(state.stage, co.Assembling | co.Running)
    if (trains and force == 0) or (goes_on.elsewhere and before_its_end):
        turn.state = replace(state, back=goes_on.back)
        stop(turn, problems.starter_of(state.plan), force)


def on_away_over(turn: CoordinatorTurn) -> None:
    """The wait for away members is over. While steps still end, it is extended."""
    state = turn.state
    ends = {
        device: part.away_s + verdicts.limit_s(state, device)
        for device, part in state.parts.items()
        if part.away_s is not None
    }
    if not ends:
        return
    first = min(ends, key=lambda device: ends[device])
    left_s = ends[first] - turn.now_s
    lively_s = state.last_report.progressed_s + limits.LIVELY_S - turn.now_s
    if left_s > 0 or lively_s > 0:
        turn.wait("away", max(left_s, lively_s, 1.0))
        return
    # Custom training loops have no checkpoints.
    began = not isinstance(state.stage, co.Assembling) and state.plan.strategy == "managed"
    verdict = problems.away_too_long(state.name(first), verdicts.limit_s(state, first), began=began)
    if isinstance(state.stage, co.Draining):
        outputs_lost(turn, verdict)
    elif verdicts.may_go_on_without(state, first):
        go_on_without(turn, first, verdict)
        on_away_over(turn)
    else:
        fail(turn, verdict)


def on_away(turn: CoordinatorTurn, device: DeviceId, problem: Problem) -> None:
    if patience.may_wait_for(turn, device):
        patience.wait_for(turn, device, problem)
    else:
        on_lost(turn, device, problem)


def on_lost(turn: CoordinatorTurn, device: DeviceId, problem: Problem) -> None:
    """The run goes on without it, or ends."""
    if device in turn.state.unfinished() and verdicts.may_go_on_without(turn.state, device):
        go_on_without(turn, device, problems.why_lost(turn.state.plan, problem))
        return
    part = turn.state.parts[device]
    turn.update_part(device, replace(part, takes_part=False, away_s=None, phase="ended"))
    state = turn.state
    words = problems.LINK_LOST
    turn.share(ev.MemberPhaseChanged(run=state.plan.run, device=device, phase="ended", words=words))
    verdict = problems.lost_device(state.plan, device, problem)
    done = state.has_ended(device)
    needed = device == state.chief.device and state.outputs != "here"
    match state.stage:
        case co.Ending(weak=weak):
            if weak and not done:
                fail(turn, verdict)  # TensorFlow notices a silent laptop a little before its link does
            check_for_end(turn)
        case _ if done and needed:
            outputs_lost(turn, problem)
        case _ if done:
            check_for_end(turn)
        case co.Halting():
            abandon(turn, verdict)  # its peers would hang at their next step; the user wanted the end anyway
        case _ if problem.code in BY_A_USER and not isinstance(state.stage, co.Assembling):
            close(turn, state.name(device))
        case _:
            fail(turn, verdict)
