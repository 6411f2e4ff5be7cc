"""A starter from which nothing comes is waited for, and trainers are watched meanwhile. Pure.

Only where what joins the trainers outlasts silence (``Plan.patient``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

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


def hear_word(turn: Turn, task: str) -> None:
    """Its trainer said something, whatever it was."""
    word = turn.state.words.get(task)
    if word is not None and word.held_told_s is not None:
        tell_stand(turn, task, None)
    _note(turn, task, pa.Word(turn.now_s))


def listen(turn: Turn, cpu_s: Mapping[str, float]) -> None:
    """Who has met the others and has said nothing for long is told of: native code may hold the interpreter.

    Alone it proves nothing (where each batch of ``predict`` ends soon, nobody has anything to say): the
    starter believes it of a trainer whose keep-alives do not come either.
    """
    state = turn.state
    for task, phase in state.doing.items():
        word = state.words.get(task)
        if word is None or phase != "training" or task in state.stopped or state.plan.strategy != "managed":
            continue
        lasted_s, used_s = turn.now_s - word.at_s, cpu_s.get(task, 0.0)
        if word.looked_s <= word.at_s:
            _note(turn, task, replace(word, looked_s=turn.now_s, cpu_s=used_s))
        elif lasted_s >= limits.HELD_S and turn.now_s - (word.held_told_s or 0.0) >= limits.STAND_TOLD_S:
            cores = max(0.0, used_s - word.cpu_s) / (turn.now_s - word.looked_s)
            tell_stand(turn, task, Stand(activity="script", held=True, lasted_s=lasted_s, cores=cores))
            _note(turn, task, replace(word, held_told_s=turn.now_s))


def _note(turn: Turn, task: str, word: pa.Word) -> None:
    words = {**turn.state.words, task: word}
    turn.state = replace(turn.state, words=MappingProxyType(words))


def tell_stand(turn: Turn, task: str, stand: Stand | None) -> None:
    tell_starter(turn, ms.StandTold(run=turn.state.plan.run, task=task, stand=stand))
