"""A starter from which nothing comes is waited for, and trainers are watched meanwhile. Pure.

Only of runs whose members meet by the exchange (``Plan.patient``).
"""

from __future__ import annotations

from dataclasses import replace

from core.run import problems
from core.run.participant import state as pa
from core.run.participant.ending import Turn, lose_starter, show, tell_starter
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem
from core.vocabulary.waits import Stand, WaitsFor

# --- the starter -------------------------------------------------------------------------------------------


def may_wait_for(turn: Turn, problem: Problem) -> bool:
    """Whether this part goes on although its starter's link is lost for this reason."""
    at_work = not isinstance(turn.state.stage, pa.Leaving)
    stopping = "stopping" in turn.state.doing.values()
    return turn.state.plan.patient and at_work and not stopping and problem.code in problems.SILENCES


def miss_starter(turn: Turn) -> None:
    if turn.state.away_s is None:
        turn.state = replace(turn.state, away_s=turn.now_s)
        turn.wait("away", turn.state.plan.away_s)
        turn.wait("look", limits.LOOK_S)


def stand_still(turn: Turn) -> None:
    """While the starter is away, only that has a limit."""
    if turn.state.away_s is not None:
        turn.no_longer("consent", "receive", "launch")


def welcome_starter(turn: Turn) -> None:
    """It is linked again: what may have been lost is asked for, and will be asked for."""
    if turn.state.away_s is None:
        return
    turn.no_longer("away")
    turn.state = replace(turn.state, away_s=None, resuming=True, stopped=frozenset())  # told anew
    run = turn.state.plan.run
    if (shown := turn.state.shown.run) is not None and shown.waiting is not None:
        show(turn, ev.WaitingChanged(run=run))
    tell_starter(turn, ms.Resumed(run=run, heard=turn.state.heard))
    match turn.state.stage:
        case pa.Asking():
            turn.wait("consent", limits.CONSENT_S + limits.SLACK_S)
        case pa.Receiving():
            turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
        case pa.Ready():
            turn.wait("launch", limits.LAUNCH_S)


def repeat(turn: Turn, heard: int) -> None:
    """What the starter missed while there was no link."""
    turn.state = replace(turn.state, resuming=False)
    run, prepared = turn.state.plan.run, turn.state.prepared
    match turn.state.stage:
        case pa.Receiving():
            turn.effects.append(pa.ListMissing())  # what came is kept; the rest is sent anew
        case pa.Copying() | pa.Ready():
            tell_starter(turn, ms.FilesWanted(run=run, files=()))
    for event, number in turn.state.replay.since(heard):
        tell_starter(turn, ms.Reported(event=event, number=number))
    if isinstance(turn.state.stage, pa.Ready) and prepared is not None:
        tell_starter(turn, prepared)
    offer(turn)


def offer(turn: Turn) -> None:
    """What the chief's script wrote: not before the starter is there and has heard of the chief's end, and
    again from the first piece on where the link was lost before it had all of them."""
    state, found = turn.state, turn.state.found
    if found is None or state.outputs_taken or isinstance(state.stage, pa.Leaving):
        return
    if state.away_s is not None or state.resuming:
        return
    offered = ms.OutputsOffered(run=state.plan.run, manifest=found.manifest, problem=found.problem)
    tell_starter(turn, offered)
    turn.effects.append(pa.SendOutputs(found.manifest))


def on_away_over(turn: Turn) -> None:
    name, limit_s = turn.state.starter_name, turn.state.plan.away_s
    lose_starter(turn, problems.away_too_long(name, limit_s))


def _show_away(turn: Turn) -> None:
    state = turn.state
    if state.away_s is None:
        return
    lasted_s = turn.now_s - state.away_s
    if lasted_s < limits.MISSED_S:
        return
    left_s = max(0.0, state.plan.away_s - lasted_s)
    away = WaitsFor(
        device=state.plan.starter,
        cause="away",
        lasted_s=lasted_s,
        since_s=state.away_s + state.unix_s,
        left_s=left_s,
    )
    show(turn, ev.WaitingChanged(run=state.plan.run, waits=(away,)))


# --- own trainers ------------------------------------------------------------------------------------------


def begin(turn: Turn) -> None:
    """Trainers were started."""
    if turn.state.plan.patient:
        turn.wait("look", limits.LOOK_S)


def look(turn: Turn) -> None:
    """A process that is stopped can't say so itself."""
    _show_away(turn)
    if turn.state.doing:
        turn.effects.append(pa.LookAtTrainers())
    if turn.state.doing or turn.state.away_s is not None:
        turn.wait("look", limits.LOOK_S)


def see(turn: Turn, stopped: frozenset[str]) -> None:
    """``stopped``: tasks whose process is."""
    before = turn.state.stopped
    turn.state = replace(turn.state, stopped=stopped)
    for task in sorted(stopped - before):
        tell_stand(turn, task, Stand(activity="script", stopped=True))
    for task in sorted(before - stopped):
        tell_stand(turn, task, None)


def tell_stand(turn: Turn, task: str, stand: Stand | None) -> None:
    tell_starter(turn, ms.StandTold(run=turn.state.plan.run, task=task, stand=stand))
