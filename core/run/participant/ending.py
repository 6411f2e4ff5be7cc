"""What every step of a participant tells the starter or this screen, and how its part ends. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.run import problems
from core.run.draft import Draft
from core.run.participant import state as pa
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.events import RunEvent
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Failed, MemberPhase, Stopped
from core.vocabulary.progress import LogLines
from core.vocabulary.state import apply

Turn = Draft[pa.Participation, pa.OwnEffect]
"""One step of a participant under way."""
_ORDER: tuple[MemberPhase, ...] = ("starting", "meeting", "training", "stopping")

# --- what is sent and shown ---------------------------------------------------------------------------------


def enter(turn: Turn, stage: pa.Stage) -> None:
    turn.state = replace(turn.state, stage=stage)


def tell_starter(turn: Turn, message: Message) -> None:
    turn.send(turn.state.plan.starter, message)


def report(turn: Turn, event: RunEvent) -> None:
    """To the starter, whose mirror shows it here too; without it, straight to this screen."""
    if turn.state.starter_lost:
        show(turn, event)
        return
    number = 0
    if turn.state.plan.patient and not turn.state.local:
        replay, number = turn.state.replay.after(event)
        turn.state = replace(turn.state, replay=replay)
    if not (number and turn.state.resuming):
        tell_starter(turn, ms.Reported(event=event, number=number))


def show(turn: Turn, event: RunEvent) -> None:
    """On this screen alone."""
    try:
        turn.state = replace(turn.state, shown=apply(turn.state.shown, event))
    except IllegalTransition:
        return
    turn.emit(event)


def say_doing(turn: Turn) -> None:
    """The least of what this device's trainers do."""
    if turn.state.doing:
        say_phase(turn, min(turn.state.doing.values(), key=_ORDER.index))


def say_phase(turn: Turn, phase: MemberPhase, *, done: int = 0, total: int = 0) -> None:
    state = turn.state
    said = (phase, state.strategy)
    if said == state.said_phase and not total:
        return
    turn.state = replace(state, said_phase=said)
    report(
        turn,
        ev.MemberPhaseChanged(
            run=state.plan.run, device=state.me, phase=phase, done=done, total=total, strategy=state.strategy
        ),
    )


def say(turn: Turn, task: str, words: str, *, difference: bool = False) -> None:
    lines = LogLines(task=task, stream="tandem", text=words, difference=difference)
    report(turn, ev.MemberLogged(run=turn.state.plan.run, device=turn.state.me, lines=lines))


def settle(turn: Turn, allowed: bool) -> None:
    """The question to this user is answered, or not open any more."""
    turn.no_longer("consent")
    turn.emit(ev.ConsentSettled(run=turn.state.plan.run, allowed=allowed))


# --- the end -----------------------------------------------------------------------------------------------


def decline(turn: Turn, problem: Problem) -> None:
    turn.state = replace(turn.state, refusal=problem)
    tell_starter(turn, ms.Declined(run=turn.state.plan.run, problem=problem))
    leave(turn, problem)


def conclude(turn: Turn) -> None:
    """The run's last phase was told."""
    leave(turn, problems.starter_silent(turn.state.starter_name), concluded=True)


def lose_starter(turn: Turn, problem: Problem) -> None:
    leave(turn, problems.lost_starter(turn.state.starter_name, problem), starter_lost=True)


def leave(
    turn: Turn, verdict: Problem, *, starter_lost: bool = False, concluded: bool = False, by: str = ""
) -> None:
    """End this part now, whatever it does."""
    state = turn.state
    if isinstance(state.stage, pa.Asking):
        settle(turn, False)
    turn.no_longer(*(turn.state.waits - {"farewell"}))
    if not state.joined or isinstance(state.stage, pa.Listing):
        go(turn)  # the starter has heard of no yes: it tells no last phase
        return
    before = state.stage
    if isinstance(before, pa.Leaving):
        after = replace(
            before,
            starter_lost=before.starter_lost or starter_lost,
            concluded=before.concluded or concluded,
            by=before.by or by,
        )
    else:
        after = pa.Leaving(verdict, starter_lost, concluded, by)
        if state.doing:
            turn.effects.append(pa.StopTrainers(2))
    enter(turn, after)
    if not after.concluded and "farewell" not in turn.state.waits:
        turn.wait("farewell", limits.FAREWELL_S)


def go_if_over(turn: Turn) -> None:
    """Once no trainer runs and the run's end has been shown."""
    state = turn.state
    if not isinstance(state.stage, pa.Leaving) or state.doing:
        return
    if not state.stage.concluded:
        if not state.stage.starter_lost:
            return
        # The starter cannot say it any more.
        if state.shown.run is not None and not state.shown.run.over:
            by, verdict = state.stage.by, state.stage.verdict
            phase = Stopped(by=by) if by else Failed(problem=verdict)
            turn.emit(ev.RunPhaseChanged(run=state.plan.run, phase=phase))
    go(turn)


def go(turn: Turn) -> None:
    turn.no_longer(*turn.state.waits)
    turn.effects.append(pa.Leave(turn.state.outputs_taken, turn.state.joined))
    enter(turn, pa.Gone())
