"""Handles the reports of this laptop's trainers, and their ends. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from core.run.participant import patience
from core.run.participant import state as pa
from core.run.turn import ParticipantTurn
from core.vocabulary import events as ev
from core.vocabulary import trainer_messages
from core.vocabulary.phases import Exit, MemberPhase


def on_report(turn: ParticipantTurn, task: str, said: trainer_messages.Report) -> None:
    plan, run, me = turn.state.plan, turn.state.plan.run, turn.state.me
    match said:
        case trainer_messages.Booted() if plan.solo or plan.strategy == "own":
            _set_phase(turn, task, "training")
        case trainer_messages.Connecting():
            _set_phase(turn, task, "meeting")
        case trainer_messages.Met(strategy=strategy):
            turn.state = replace(turn.state, strategy=strategy)
            _set_phase(turn, task, "training")
        case trainer_messages.Progressed(progress=progress) if _reports_steps(turn, task):
            # The trainer reports ten steps a second at most.
            turn.report(ev.MemberProgressed(run=run, device=me, progress=progress))
        case trainer_messages.Measured(expectation=expectation):
            if task == turn.state.chief.name:
                turn.report(ev.MemberMeasured(run=run, device=me, expectation=expectation))
        case trainer_messages.EpochEnded(epoch=epoch) if _reports_steps(turn, task):
            turn.report(ev.MemberEndedEpoch(run=run, device=me, epoch=epoch))
        case trainer_messages.Evaluated(logs=logs):
            turn.log(task, "evaluate: " + ", ".join(f"{key} {value:.4g}" for key, value in logs.items()))
        case trainer_messages.Said(words=words, difference=difference):
            turn.log(task, words, difference=difference)
        case trainer_messages.StatusChanged(status=status):
            patience.send_status(turn, task, status)
        case trainer_messages.Kept():
            turn.state = replace(turn.state, has_checkpoint=True)
        case trainer_messages.Progressed() | trainer_messages.EpochEnded():
            pass  # of another task than this laptop's first
        case trainer_messages.Booted() | trainer_messages.FitBegan() | trainer_messages.Ended():
            pass  # nothing that a screen shows
        case _:
            assert_never(said)


def _reports_steps(turn: ParticipantTurn, task: str) -> bool:
    """Several trainers here do the same steps, so only the first reports them."""
    return task == turn.state.plan.tasks_of(turn.state.me)[0].name


def _set_phase(turn: ParticipantTurn, task: str, phase: MemberPhase) -> None:
    if turn.state.doing[task] != "stopping":
        turn.set_doing({**turn.state.doing, task: phase})
        turn.report_doing()


def on_exit(turn: ParticipantTurn, task: str, end: Exit) -> None:
    turn.set_doing({name: phase for name, phase in turn.state.doing.items() if name != task})
    state, leaving = turn.state, isinstance(turn.state.stage, pa.Leaving)
    if state.leaves is not None and end.reason != "finished":
        end = Exit(reason="killed", problem=state.leaves)
    turn.report(ev.MemberEnded(run=state.plan.run, device=state.me, task=task, exit=end))
    if task == state.chief.name and not leaving:
        turn.effects.append(pa.FindOutputs())
    if state.doing:
        turn.report_doing()
    elif not leaving:
        turn.enter(pa.Trained())
