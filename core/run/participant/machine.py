"""A participant in a run, including the starter's own part: ``step(state, input, now_s)``. Pure.

Invariants: the project's code runs only after this user (or an earlier decision) allowed it, and only what
was allowed; trainers run only between ``Launch`` and the end; an abandoned run ends them at once, and so does
a lost starter, unless ``patience`` waits for it; every part ends with ``Leave``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from msgspec import structs

from core.cluster.make_plan import FIRST_PORT, LAST_PORT
from core.cluster.tf_config import check
from core.run import problems
from core.run.participant import ending, patience
from core.run.participant import state as pa
from core.run.participant.ending import (
    conclude,
    decline,
    go,
    go_if_over,
    go_on_without,
    leave,
    lose_starter,
)
from core.run.participant.reports import on_exit, on_report
from core.run.turn import ParticipantTurn
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition, TandemError
from core.vocabulary.events import MirroredEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import Message
from core.vocabulary.permission import network_of
from core.vocabulary.phases import Exit, ended
from core.vocabulary.plan import Plan, without_ports
from core.vocabulary.state import apply
from core.vocabulary.traffic import From, LinkAway, LinkBack, LinkLost

Stepped = tuple[pa.Participation, tuple[pa.Effect, ...]]


def same_run(allowed: Plan, launched: Plan) -> bool:
    """Whether ``launched`` is ``allowed`` with other ports and certificates, and nothing else."""
    return without_ports(allowed) == without_ports(launched)


def _are_trainers_ports(plan: Plan) -> bool:
    """Security invariant: a walled script may call these ports, and a starter names them."""
    return all(FIRST_PORT <= task.port < LAST_PORT for task in plan.tasks if task.port)


def step(state: pa.Participation, input: pa.Input, now_s: float) -> Stepped:
    """One step. After ``Leave`` nothing happens any more."""
    if isinstance(state.stage, pa.Gone):
        return state, ()
    turn = ParticipantTurn(state, now_s)
    _on_input(turn, input)
    patience.suspend_waits(turn)
    go_if_over(turn)
    return turn.state, tuple(turn.effects)


def _on_input(turn: ParticipantTurn, input: pa.Input) -> None:
    state = turn.state
    match input:
        case pa.ManifestCame(manifest) if isinstance(state.stage, pa.Invited):
            turn.state = replace(state, request=structs.replace(state.request, manifest=manifest))
        case pa.Checked() if isinstance(state.stage, pa.Invited):
            _on_checked(turn, input)
        case pa.Decided(allowed) if isinstance(state.stage, pa.Asking):
            _on_decided(turn, allowed)
        case pa.Listed(total_bytes) if isinstance(state.stage, pa.Scanning):
            _on_listed(turn, total_bytes)
        case pa.PiecesCame(done, total, rate_bytes_s) if isinstance(state.stage, pa.Receiving):
            turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
            turn.report_phase("receiving", done=done, total=total, rate_bytes_s=rate_bytes_s)
        case pa.WorkDone() if isinstance(state.stage, pa.Scanning | pa.Receiving | pa.Copying):
            _on_work(turn, input)
        case pa.FilesHere() if isinstance(state.stage, pa.Receiving):
            turn.cancel("receive")
            _make_ready(turn)
        case pa.MadeReady() if isinstance(state.stage, pa.Copying):
            _on_ready(turn, input)
        case pa.PreparingFailed(problem) if isinstance(state.stage, pa.Scanning | pa.Receiving | pa.Copying):
            decline(turn, problem)
        case From(device, message) if device == state.plan.starter:
            _on_message(turn, message)
        case pa.Abandoned(problem, by) if not state.local and not state.starter_lost:
            leave(turn, problem, starter_lost=True, by=by)
        case LinkLost(_, problem) if not state.local and not state.starter_lost:
            lose_starter(turn, problem)
        case LinkAway(_, problem) if not state.local and not state.starter_lost:
            if patience.may_wait_for(turn):
                patience.wait_for_starter(turn)
            else:
                patience.give_up(turn, problem)
        case LinkBack():
            patience.on_starter_back(turn)
        case pa.LeaveWanted(why) if isinstance(state.stage, pa.TrainersRunning) and state.leaves is None:
            ending.leave_run(turn, why)
        case pa.TrainersChecked(stopped, cpu_s):
            patience.on_stopped(turn, stopped & set(state.doing))
            patience.report_silent(turn, cpu_s)
        case pa.TrainerReported(task, said) if task in state.doing:
            patience.on_sign_of_life(turn, task, said)
            on_report(turn, task, said)
        case pa.TrainerWrote(lines):
            turn.report(ev.MemberLogged(run=state.plan.run, device=state.me, lines=lines))
        case pa.TrainerEnded(task, end) if task in state.doing:
            on_exit(turn, task, end)
        case pa.OutputsFound():
            _on_outputs(turn, input)
        case TimerFired(wait) if wait in state.waits:
            turn.fired(wait)
            _on_wait_over(turn, wait)
        case pa.ManifestCame() | pa.Checked() | pa.Decided() | pa.Listed() | pa.PiecesCame() | pa.FilesHere():
            pass  # too late
        case (
            pa.WorkDone()
            | pa.MadeReady()
            | pa.PreparingFailed()
            | LinkAway()
            | LinkLost()
            | pa.LeaveWanted()
            | pa.Abandoned()
            | pa.TrainerReported()
            | pa.TrainerEnded()
            | TimerFired()
        ):
            pass  # too late
        case From():
            pass  # only the starter may command
        case _:
            assert_never(input)


# --- before the trainers start --------------------------------------------------------------------------


def _on_checked(turn: ParticipantTurn, checked: pa.Checked) -> None:
    if not turn.state.local:
        turn.state = replace(turn.state, opened=checked.opened)
    if checked.refusal is not None:
        decline(turn, checked.refusal)
    elif checked.allowed or turn.state.local:
        _join(turn)
    else:
        state, plan, request = turn.state, turn.state.plan, turn.state.request
        walls = checked.reach.walls if checked.reach is not None else "none"
        question = ev.ConsentAsked(
            run=plan.run,
            device=plan.starter,
            name=state.starter_name,
            project=plan.project,
            script=plan.script,
            arguments=plan.arguments,
            files=state.manifest.files,
            changed=checked.differs is not None,
            differs=checked.differs or {},
            beyond=checked.beyond,
            checkpoint_bytes=sum(each.total_bytes for each in (request.checkpoint, request.written) if each),
            data=plan.data,
            rate_bytes_s=checked.rate_bytes_s,
            network=network if (network := network_of(plan, walls, checked.gaps)) != "open" else "",
            walls=walls,
            opened=checked.opened,
            gaps=checked.gaps,
            argument_sets=plan.trial.argument_sets if plan.trial is not None else (),
        )
        turn.enter(pa.Asking())
        turn.emit(question)
        turn.report_phase("consent")
        turn.wait("consent", limits.CONSENT_S + limits.SLACK_S)


def _on_decided(turn: ParticipantTurn, allowed: bool) -> None:
    if allowed:
        turn.settle(True)
        _join(turn)
    else:
        decline(turn, problems.refused_by_user())


def _join(turn: ParticipantTurn) -> None:
    if turn.state.local and turn.state.request.checkpoint is None:
        _on_listed(turn, 0)  # this laptop has the files
        return
    turn.enter(pa.Scanning())
    turn.effects.append(pa.ListMissing())


def _on_listed(turn: ParticipantTurn, total_bytes: int) -> None:
    turn.tell_starter(ms.FilesWanted(run=turn.state.plan.run, total_bytes=total_bytes))
    if total_bytes:
        turn.enter(pa.Receiving())
        turn.report_phase("receiving", total=total_bytes)
        turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
    else:
        _make_ready(turn)


def _on_work(turn: ParticipantTurn, work: pa.WorkDone) -> None:
    if isinstance(turn.state.stage, pa.Receiving):
        turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
    turn.report_phase("receiving", words=work.words, done=work.done, total=work.total)


def _make_ready(turn: ParticipantTurn) -> None:
    turn.enter(pa.Copying())
    turn.effects.append(pa.MakeReady())


def _on_ready(turn: ParticipantTurn, made: pa.MadeReady) -> None:
    turn.enter(pa.Ready())
    prepared = ms.Prepared(
        run=turn.state.plan.run,
        ports=dict(made.ports),
        certificates=dict(made.certificates),
        load_s=made.load_s,
    )
    turn.tell_starter(prepared)
    turn.report_phase("prepared")
    if not turn.state.local:  # the coordinator beside it has limits of its own
        turn.wait("launch", limits.LAUNCH_S)


def _on_files_from(turn: ParticipantTurn, giver: DeviceId) -> None:
    plan = turn.state.plan
    if giver not in _others(turn.state):
        giver = plan.starter
    turn.enter(pa.Receiving(giver))
    turn.effects.append(pa.FetchFrom(giver))


def _on_give_files(turn: ParticipantTurn, device: DeviceId) -> None:
    """Security invariant: only other members of the run get anything."""
    if device in _others(turn.state) and device != turn.state.plan.starter:
        turn.effects.append(pa.GiveTo(device))


def _others(state: pa.Participation) -> set[DeviceId]:
    return {member.device for member in state.plan.members} - {state.me}


# --- messages of the starter ---------------------------------------------------------------------------


def _on_message(turn: ParticipantTurn, message: Message) -> None:
    state = turn.state
    if isinstance(message, ms.RunMessage) and message.run != state.plan.run:
        return
    match message:
        case ms.FilesFrom(giver=giver) if state.stage == pa.Receiving():
            _on_files_from(turn, giver)
        case ms.GiveFiles(to=device) if isinstance(state.stage, pa.Receiving | pa.Copying | pa.Ready):
            _on_give_files(turn, device)
        case ms.Launch() if isinstance(turn.state.stage, pa.Ready):
            _on_launch(turn, message)
        case ms.StopAsked(force=force) if isinstance(turn.state.stage, pa.TrainersRunning):
            turn.state = replace(turn.state, asked_force=max(force, turn.state.asked_force))
            turn.set_doing(dict.fromkeys(turn.state.doing, "stopping"))
            turn.effects.append(pa.StopTrainers(max(0, min(force, 2))))
            turn.report_doing()
        case ms.GoOnWithout() if isinstance(state.stage, pa.TrainersRunning | pa.Trained):
            go_on_without(turn, message)
        case ms.RunAbandoned() if state.joined and not state.local and state.shown.run is None:
            # The starter gave the run up before it heard this laptop's yes.
            go(turn)
        case ms.RunAbandoned(problem=problem):
            leave(turn, problem)
        case ms.EventTold(event=event):
            _on_mirrored(turn, event)
        case ms.OutputsReceived():
            turn.state = replace(turn.state, outputs_taken=True)
        case ms.FilesFrom() | ms.GiveFiles() | ms.Launch() | ms.StopAsked() | ms.GoOnWithout():
            pass  # too early, or too late
        case _:
            raise IllegalTransition(f"{type(message).__name__} is not a message that a starter sends")


def _on_launch(turn: ParticipantTurn, launch: ms.Launch) -> None:
    turn.cancel("launch")
    state, plan = turn.state, launch.plan
    tasks = state.plan.tasks_of(state.me)
    try:
        if not same_run(state.plan, plan) or not _are_trainers_ports(plan):
            # This user allowed this run; nothing else is ever started.
            raise TandemError.of(problems.bad_message(state.starter_name))
        check(plan)
    except TandemError as error:
        end = Exit(reason="killed", problem=error.problem, shared=False)
        for task in tasks:
            turn.report(ev.MemberEnded(run=state.plan.run, device=state.me, task=task.name, exit=end))
        leave(turn, error.problem)
        return
    turn.state = replace(turn.state, plan=plan, stage=pa.TrainersRunning())
    turn.set_doing({task.name: "starting" for task in tasks})
    turn.effects.append(pa.StartTrainers(plan, limits.loading_s(launch.meet_s)))
    turn.report_doing()
    patience.start_watching(turn)


def _on_mirrored(turn: ParticipantTurn, event: MirroredEvent) -> None:
    """Show the starter's events only where they fit the state; a last phase ends this part."""
    state = turn.state
    if state.local:
        if isinstance(event, ev.RunPhaseChanged) and ended(event.phase):
            conclude(turn)
        return
    match state.stage:
        case pa.Ready() if isinstance(event, ev.MemberPhaseChanged) and event.phase == "receiving":
            turn.wait("launch", limits.LAUNCH_S)  # others still get files
        case pa.Invited() | pa.Asking() | pa.Leaving(concluded=True) | pa.Leaving(starter_lost=True):
            return
    if isinstance(event, ev.RunPlanned) and not same_run(state.plan, event.plan):
        return
    try:
        shown = apply(state.shown, event)
    except IllegalTransition:
        turn.state = replace(state, left_out=state.left_out + 1)
        return
    turn.state = replace(state, shown=shown)
    turn.emit(event)
    if shown.run is not None and shown.run.over:
        conclude(turn)


# --- trainers ------------------------------------------------------------------------------------------


def _on_outputs(turn: ParticipantTurn, found: pa.OutputsFound) -> None:
    if not isinstance(turn.state.stage, pa.Leaving):
        run = turn.state.plan.run
        turn.tell_starter(ms.OutputsOffered(run=run, manifest=found.manifest, problem=found.problem))
        turn.effects.append(pa.SendOutputs(found.manifest))


# --- leaving -------------------------------------------------------------------------------------------


def _on_wait_over(turn: ParticipantTurn, wait: Wait) -> None:
    match wait, turn.state.stage:
        case "consent", _:
            decline(turn, problems.no_consent(["this laptop"]))
        case "receive" | "launch", _:
            decline(turn, problems.never_launched(turn.state.starter_name))
        case "look", _:
            patience.check_trainers(turn)
        case "away", _:
            patience.on_away_over(turn)
        case "leave", _:
            turn.effects.append(pa.StopTrainers(2))
        case "farewell", pa.Leaving() as leaving:
            turn.enter(replace(leaving, starter_lost=True))
