"""Waits for a silent starter, and watches the trainers meanwhile. Pure.

Applies only where the trainers' connections outlast silence (``Plan.patient``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from core.run import problems
from core.run.participant import state as pa
from core.run.participant.ending import lose_starter, may_go_on_alone
from core.run.turn import ParticipantTurn
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.trainer_messages import Progressed, Report
from core.vocabulary.waits import TrainerStatus, WaitsFor

# --- the starter -------------------------------------------------------------------------------------------


def may_wait_for(turn: ParticipantTurn) -> bool:
    """Whether this part goes on although nothing comes from its starter."""
    at_work = not isinstance(turn.state.stage, pa.Leaving)
    return turn.state.plan.patient and at_work and "stopping" not in turn.state.doing.values()


def wait_for_starter(turn: ParticipantTurn) -> None:
    if turn.state.away_s is None:
        turn.state = replace(turn.state, away_s=turn.now_s)
        turn.wait("away", _limit_s(turn))
        turn.wait("look", limits.LOOK_S)


def _limit_s(turn: ParticipantTurn) -> float:
    """How long to wait for the starter once it is away."""
    plan = turn.state.plan
    return plan.go_on_s if may_go_on_alone(turn.state) else plan.away_s


def suspend_waits(turn: ParticipantTurn) -> None:
    """While the starter is away, its absence is the only limit."""
    if turn.state.away_s is not None:
        turn.cancel("consent", "receive", "launch")


def on_starter_back(turn: ParticipantTurn) -> None:
    """The starter is back, and everything that it said meanwhile arrives."""
    if turn.state.away_s is None:
        return
    turn.cancel("away")
    turn.state = replace(turn.state, away_s=None)
    run = turn.state.plan.run
    if (shown := turn.state.shown.run) is not None and shown.waiting is not None:
        turn.show(ev.WaitingChanged(run=run))
    match turn.state.stage:
        case pa.Asking():
            turn.wait("consent", limits.CONSENT_S + limits.SLACK_S)
        case pa.Receiving():
            turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
        case pa.Ready():
            turn.wait("launch", limits.LAUNCH_S)


def give_up(turn: ParticipantTurn, problem: Problem) -> None:
    """Go on without the starter, which learns of it when it is back."""
    if not isinstance(turn.state.stage, pa.Leaving):
        turn.tell_starter(ms.Declined(run=turn.state.plan.run, problem=problems.part_gone()))
    lose_starter(turn, problem)


def on_away_over(turn: ParticipantTurn) -> None:
    """The wait for the starter is over. While steps still end, it is extended."""
    name, limit_s = turn.state.starter_name, _limit_s(turn)
    stepped_s = max((last.stepped_s for last in turn.state.heard.values()), default=-math.inf)
    if may_go_on_alone(turn.state) and (left_s := stepped_s + limits.LIVELY_S - turn.now_s) > 0:
        turn.wait("away", max(left_s, 1.0))
        return
    give_up(turn, problems.away_too_long(name, limit_s))


def _show_away(turn: ParticipantTurn) -> None:
    state = turn.state
    if state.away_s is None:
        return
    lasted_s = turn.now_s - state.away_s
    if lasted_s < limits.MISSED_S:
        return
    left_s = max(0.0, _limit_s(turn) - lasted_s)
    away = WaitsFor(
        device=state.plan.starter,
        cause="away",
        lasted_s=lasted_s,
        since_s=state.away_s + state.unix_offset_s,
        left_s=left_s,
    )
    turn.show(ev.WaitingChanged(run=state.plan.run, waits=(away,)))


# --- own trainers ------------------------------------------------------------------------------------------


def start_watching(turn: ParticipantTurn) -> None:
    """Trainers were started."""
    if turn.state.plan.patient:
        turn.wait("look", limits.LOOK_S)


def check_trainers(turn: ParticipantTurn) -> None:
    """Check the processes: a stopped one can't report it itself."""
    _show_away(turn)
    if turn.state.doing:
        turn.effects.append(pa.CheckTrainers())
    if turn.state.doing or turn.state.away_s is not None:
        turn.wait("look", limits.LOOK_S)


def on_stopped(turn: ParticipantTurn, stopped: frozenset[str]) -> None:
    """``stopped``: tasks whose process is stopped."""
    before = turn.state.stopped
    turn.state = replace(turn.state, stopped=stopped)
    for task in sorted(stopped - before):
        send_status(turn, task, TrainerStatus(activity="script", stopped=True))
    for task in sorted(before - stopped):
        send_status(turn, task, None)


def on_sign_of_life(turn: ParticipantTurn, task: str, said: Report) -> None:
    last = turn.state.heard.get(task)
    if last is not None and last.silence_told_s is not None:
        send_status(turn, task, None)
    stepped_s = last.stepped_s if last is not None else -math.inf
    if isinstance(said, Progressed):
        stepped_s = turn.now_s
    _note(turn, task, pa.LastHeard(turn.now_s, stepped_s=stepped_s))


def report_silent(turn: ParticipantTurn, cpu_s: Mapping[str, float]) -> None:
    """Report trainers that have met the others and have long been silent: native code may hold the
    interpreter.

    Silence alone proves nothing (short batches of ``predict`` report nothing): the starter acts on
    it only where the trainer's keep-alives are missing, too.
    """
    state = turn.state
    for task, phase in state.doing.items():
        last = state.heard.get(task)
        if last is None or phase != "training" or task in state.stopped or state.plan.strategy != "managed":
            continue
        lasted_s, used_s = turn.now_s - last.at_s, cpu_s.get(task, 0.0)
        if last.checked_s <= last.at_s:
            _note(turn, task, replace(last, checked_s=turn.now_s, cpu_s=used_s))
        elif (
            lasted_s >= limits.HELD_S and turn.now_s - (last.silence_told_s or 0.0) >= limits.ACTIVITY_EVERY_S
        ):
            cores = max(0.0, used_s - last.cpu_s) / (turn.now_s - last.checked_s)
            send_status(
                turn, task, TrainerStatus(activity="script", held=True, lasted_s=lasted_s, cores=cores)
            )
            _note(turn, task, replace(last, silence_told_s=turn.now_s))


def _note(turn: ParticipantTurn, task: str, last: pa.LastHeard) -> None:
    heard = {**turn.state.heard, task: last}
    turn.state = replace(turn.state, heard=MappingProxyType(heard))


def send_status(turn: ParticipantTurn, task: str, status: TrainerStatus | None) -> None:
    turn.tell_starter(ms.StatusTold(run=turn.state.plan.run, task=task, status=status))
