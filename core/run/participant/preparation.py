"""A participant before its trainers start: asks its user, receives the files, gets ready. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.run import problems
from core.run.participant import effects as fx
from core.run.participant import state as pa
from core.run.participant.ending import decline
from core.run.turn import ParticipantTurn
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.ids import DeviceId
from core.vocabulary.permission import network_of


def on_asked(turn: ParticipantTurn, asked: pa.Asked) -> None:
    if not turn.state.local:
        turn.state = replace(turn.state, opened=asked.opened)
    if asked.refusal is not None:
        decline(turn, asked.refusal)
    elif asked.allowed or turn.state.local:
        _join(turn)
    else:
        state, plan = turn.state, turn.state.plan
        walls = asked.reach.walls if asked.reach is not None else "none"
        question = ev.ConsentAsked(
            run=plan.run,
            device=plan.starter,
            name=state.starter_name,
            project=plan.project,
            script=plan.script,
            arguments=plan.arguments,
            files=state.manifest.files,
            changed=asked.differs is not None,
            differs=asked.differs or {},
            beyond=asked.beyond,
            checkpoint_bytes=0 if state.checkpoint is None else state.checkpoint.total_bytes,
            data=plan.data,
            rate_bytes_s=asked.rate_bytes_s,
            network=network if (network := network_of(plan, walls, asked.gaps)) != "open" else "",
            walls=walls,
            opened=asked.opened,
            gaps=asked.gaps,
            argument_sets=plan.trial.argument_sets if plan.trial is not None else (),
        )
        turn.enter(pa.Asking())
        turn.emit(question)
        turn.say_phase("consent")
        turn.wait("consent", limits.CONSENT_S + limits.SLACK_S)


def on_decided(turn: ParticipantTurn, allowed: bool) -> None:
    if allowed:
        turn.settle(True)
        _join(turn)
    else:
        decline(turn, problems.refused_by_user())


def _join(turn: ParticipantTurn) -> None:
    if turn.state.local and turn.state.checkpoint is None:
        on_listed(turn, 0)  # this laptop has the files
        return
    turn.enter(pa.Scanning())
    turn.effects.append(fx.ListMissing())


def on_listed(turn: ParticipantTurn, total_bytes: int) -> None:
    turn.tell_starter(ms.FilesWanted(run=turn.state.plan.run, total_bytes=total_bytes))
    if total_bytes:
        turn.enter(pa.Receiving())
        turn.say_phase("receiving", total=total_bytes)
        turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
    else:
        make_ready(turn)


def make_ready(turn: ParticipantTurn) -> None:
    turn.enter(pa.Copying())
    turn.effects.append(fx.MakeReady())


def on_ready(turn: ParticipantTurn, made: pa.MadeReady) -> None:
    turn.enter(pa.Ready())
    prepared = ms.Prepared(
        run=turn.state.plan.run,
        ports=dict(made.ports),
        certificates=dict(made.certificates),
        load_s=made.load_s,
    )
    turn.tell_starter(prepared)
    turn.say_phase("prepared")
    turn.wait("launch", limits.LAUNCH_S)


def on_files_from(turn: ParticipantTurn, giver: DeviceId) -> None:
    plan = turn.state.plan
    if giver not in _others(turn.state):
        giver = plan.starter
    turn.enter(pa.Receiving(giver))
    turn.effects.append(fx.FetchFrom(giver))


def on_give_files(turn: ParticipantTurn, device: DeviceId) -> None:
    """Security invariant: only other members of the run get anything."""
    if device in _others(turn.state) and device != turn.state.plan.starter:
        turn.effects.append(fx.GiveTo(device))


def _others(state: pa.Participation) -> set[DeviceId]:
    return {member.device for member in state.plan.members} - {state.me}
