"""A participant in a run, the starter's own part included: ``step(state, input, now_s)``. Pure.

Invariants: nothing of the project is run before this user (or an earlier decision) allowed it, and only what
was allowed; trainers run only between ``Launch`` and the end; an abandoned run ends them at once, and so does
a lost starter, unless ``patience`` waits for it; every part comes to ``Leave``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from core.cluster.tf_config import check
from core.run import problems
from core.run.draft import Draft
from core.run.participant import patience
from core.run.participant import state as pa
from core.run.participant.ending import (
    Turn,
    conclude,
    decline,
    enter,
    go,
    go_if_over,
    leave,
    lose_starter,
    report,
    say,
    say_doing,
    say_phase,
    settle,
    tell_starter,
)
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits, trainer_messages
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import IllegalTransition, TandemError
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import From, Message
from core.vocabulary.phases import Exit, MemberPhase, ended
from core.vocabulary.plan import Plan, without_ports
from core.vocabulary.state import apply

Stepped = tuple[pa.Participation, tuple[pa.Effect, ...]]


def take_part(me: DeviceId, prepare: ms.Prepare, starter_name: str) -> pa.Participation:
    """The state before ``Asked``."""
    return pa.Participation(
        me=me,
        plan=prepare.plan,
        manifest=prepare.manifest,
        starter_name=starter_name,
        checkpoint=prepare.checkpoint,
        texts=MappingProxyType(prepare.texts),
    )


def same_run(allowed: Plan, launched: Plan) -> bool:
    """Whether ``launched`` is ``allowed`` with other ports and certificates, and nothing else."""
    return without_ports(allowed) == without_ports(launched)


def step(state: pa.Participation, input: pa.Input, now_s: float) -> Stepped:
    """One step. After ``Leave`` nothing happens any more."""
    if isinstance(state.stage, pa.Gone):
        return state, ()
    turn: Turn = Draft(state, now_s)
    _take(turn, input)
    patience.stand_still(turn)
    go_if_over(turn)
    return turn.state, tuple(turn.effects)


def _take(turn: Turn, input: pa.Input) -> None:
    state = turn.state
    match input:
        case pa.Asked() if isinstance(state.stage, pa.Invited):
            _on_asked(turn, input)
        case pa.Decided(allowed) if isinstance(state.stage, pa.Asking):
            _on_decided(turn, allowed)
        case pa.Listed(files) if isinstance(state.stage, pa.Listing | pa.Receiving):
            _on_listed(turn, files)
        case pa.PiecesCame(done, total) if isinstance(state.stage, pa.Receiving):
            turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
            say_phase(turn, "receiving", done=done, total=total)
        case pa.FilesHere() if isinstance(state.stage, pa.Receiving):
            turn.no_longer("receive")
            _make_ready(turn)
        case pa.MadeReady() if isinstance(state.stage, pa.Copying):
            _on_ready(turn, input)
        case pa.PreparingFailed(problem) if isinstance(state.stage, pa.Listing | pa.Receiving | pa.Copying):
            decline(turn, problem)
        case From(device, message) if device == state.plan.starter:
            _on_message(turn, message)
        case pa.StarterLost(problem, by) if not state.local and not state.starter_lost:
            if by:
                leave(turn, problem, starter_lost=True, by=by)
            elif patience.may_wait_for(turn, problem):
                patience.miss_starter(turn)
            else:
                lose_starter(turn, problem)
        case pa.StarterReturned():
            patience.welcome_starter(turn)
        case pa.TrainersSeen(stopped, cpu_s):
            patience.see(turn, stopped & set(state.doing))
            patience.listen(turn, cpu_s)
        case pa.TrainerSaid(task, said) if task in state.doing:
            patience.hear_word(turn, task)
            _on_said(turn, task, said)
        case pa.TrainerWrote(lines):
            report(turn, ev.MemberLogged(run=state.plan.run, device=state.me, lines=lines))
        case pa.TrainerEnded(task, end) if task in state.doing:
            _on_exit(turn, task, end)
        case pa.OutputsFound():
            turn.state = replace(state, found=input)
            patience.offer(turn)
        case TimerFired(wait) if wait in state.waits:
            turn.fired(wait)
            _on_wait_over(turn, wait)
        case _:
            pass


# --- preparing -----------------------------------------------------------------------------------------


def _on_asked(turn: Turn, asked: pa.Asked) -> None:
    if asked.refusal is not None:
        decline(turn, asked.refusal)
    elif asked.allowed or turn.state.local:
        _join(turn)
    else:
        state, plan = turn.state, turn.state.plan
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
            checkpoint_bytes=_checkpoint_bytes(state),
            network=("downloads" if plan.downloads else "none") if plan.exchange == "sealed" else "",
            open_port=plan.opens_port,
        )
        enter(turn, pa.Asking())
        turn.emit(question)
        say_phase(turn, "consent")
        turn.wait("consent", limits.CONSENT_S + limits.SLACK_S)


def _checkpoint_bytes(state: pa.Participation) -> int:
    return 0 if state.checkpoint is None else state.checkpoint.total_bytes


def _on_decided(turn: Turn, allowed: bool) -> None:
    if allowed:
        settle(turn, True)
        _join(turn)
    else:
        decline(turn, problems.refused_by_user())


def _join(turn: Turn) -> None:
    if turn.state.local and turn.state.checkpoint is None:
        _on_listed(turn, ())  # it is the laptop that has the files
        return
    enter(turn, pa.Listing())
    turn.effects.append(pa.ListMissing())


def _on_listed(turn: Turn, files: tuple[int, ...]) -> None:
    tell_starter(turn, ms.FilesWanted(run=turn.state.plan.run, files=files))
    if files:
        enter(turn, pa.Receiving())
        project = turn.state.manifest
        total = project.total_bytes if files[0] < len(project.files) else 0
        if files[-1] >= len(project.files):
            total += _checkpoint_bytes(turn.state)
        say_phase(turn, "receiving", total=total)
        turn.wait("receive", limits.RECEIVE_S + limits.SLACK_S)
    else:
        _make_ready(turn)


def _make_ready(turn: Turn) -> None:
    enter(turn, pa.Copying())
    turn.effects.append(pa.MakeReady())


def _on_ready(turn: Turn, made: pa.MadeReady) -> None:
    enter(turn, pa.Ready())
    prepared = ms.Prepared(
        run=turn.state.plan.run,
        ports=dict(made.ports),
        certificates=dict(made.certificates),
        load_s=made.load_s,
    )
    turn.state = replace(turn.state, prepared=prepared)
    tell_starter(turn, prepared)
    say_phase(turn, "prepared")
    turn.wait("launch", limits.LAUNCH_S)


# --- the starter's word --------------------------------------------------------------------------------


def _on_message(turn: Turn, message: Message) -> None:
    if getattr(message, "run", turn.state.plan.run) != turn.state.plan.run:
        return
    match message:
        case ms.Launch() if isinstance(turn.state.stage, pa.Ready):
            _on_launch(turn, message)
        case ms.StopAsked(force=force) if isinstance(turn.state.stage, pa.Running):
            turn.state = replace(turn.state, asked_force=max(force, turn.state.asked_force))
            _do(turn, dict.fromkeys(turn.state.doing, "stopping"))
            turn.effects.append(pa.StopTrainers(max(0, min(force, 2))))
            say_doing(turn)
        case ms.RunAbandoned() if turn.state.unheard:
            go(turn)
        case ms.Mirrored(event=ev.RunPhaseChanged(phase=phase)) if ended(phase) and turn.state.unseen:
            # It came back to a run that was over before it was shown here.
            go(turn) if turn.state.unheard else leave(turn, problems.over_meanwhile(turn.state.starter_name))
        case ms.RunAbandoned(problem=problem):
            leave(turn, problem)
        case ms.Mirrored(event=event, number=number):
            # What is said again on a new link may have been heard on the old one.
            if number == 0 or number > turn.state.heard:
                turn.state = replace(turn.state, heard=max(number, turn.state.heard))
                _on_mirrored(turn, event)
        case ms.Resumed(heard=heard):
            patience.repeat(turn, heard)
        case ms.OutputsReceived():
            turn.state = replace(turn.state, outputs_taken=True)
        case _:
            pass


def _on_launch(turn: Turn, launch: ms.Launch) -> None:
    turn.no_longer("launch")
    state, plan = turn.state, launch.plan
    tasks = state.plan.tasks_of(state.me)
    try:
        if not same_run(state.plan, plan):
            # What this user allowed is this run; nothing else is ever started.
            raise TandemError.of(problems.bad_message(state.starter_name))
        check(plan)
    except TandemError as error:
        end = Exit(reason="killed", problem=error.problem, shared=False)
        for task in tasks:
            report(turn, ev.MemberEnded(run=state.plan.run, device=state.me, task=task.name, exit=end))
        leave(turn, error.problem)
        return
    turn.state = replace(turn.state, plan=plan, stage=pa.Running())
    _do(turn, {task.name: "starting" for task in tasks})
    turn.effects.append(pa.StartTrainers(plan, limits.loading_s(launch.meet_s)))
    say_doing(turn)
    patience.begin(turn)


def _on_mirrored(turn: Turn, event: RunEvent) -> None:
    """The starter's events are shown only where they can follow; a last phase ends this part."""
    state = turn.state
    if state.local:
        if isinstance(event, ev.RunPhaseChanged) and ended(event.phase):
            conclude(turn)
        return
    match state.stage:
        case pa.Invited() | pa.Asking() | pa.Leaving(concluded=True) | pa.Leaving(starter_lost=True):
            return
    if isinstance(event, ev.RunPlanned) and not same_run(state.plan, event.plan):
        return
    try:
        shown = apply(state.shown, event)
    except IllegalTransition:
        return
    turn.state = replace(state, shown=shown)
    turn.emit(event)
    if shown.run is not None and shown.run.over:
        conclude(turn)


# --- trainers ------------------------------------------------------------------------------------------


def _on_said(turn: Turn, task: str, said: trainer_messages.Report) -> None:
    plan, run, me = turn.state.plan, turn.state.plan.run, turn.state.me
    match said:
        case trainer_messages.Booted() if plan.solo or plan.strategy == "own":
            _does(turn, task, "training")
        case trainer_messages.Meeting():
            _does(turn, task, "meeting")
        case trainer_messages.Met(strategy=strategy):
            turn.state = replace(turn.state, strategy=strategy)
            _does(turn, task, "training")
        case trainer_messages.Progressed(progress=progress) if _speaks(turn, task):
            # The trainer tells ten steps a second at most.
            report(turn, ev.MemberProgressed(run=run, device=me, progress=progress))
        case trainer_messages.Measured(expectation=expectation):
            if task == plan.chief.name:
                report(turn, ev.MemberMeasured(run=run, device=me, expectation=expectation))
        case trainer_messages.EpochEnded(epoch=epoch) if _speaks(turn, task):
            report(turn, ev.MemberEndedEpoch(run=run, device=me, epoch=epoch))
        case trainer_messages.Evaluated(logs=logs):
            say(turn, task, "evaluate: " + ", ".join(f"{key} {value:.4g}" for key, value in logs.items()))
        case trainer_messages.Said(words=words, difference=difference):
            say(turn, task, words, difference=difference)
        case trainer_messages.StandChanged(stand=stand):
            patience.tell_stand(turn, task, stand)
        case _:
            pass


def _speaks(turn: Turn, task: str) -> bool:
    """Of several trainers here, which do the same steps, the first tells them."""
    return task == turn.state.plan.tasks_of(turn.state.me)[0].name


def _does(turn: Turn, task: str, phase: MemberPhase) -> None:
    if turn.state.doing[task] != "stopping":
        _do(turn, {**turn.state.doing, task: phase})
        say_doing(turn)


def _do(turn: Turn, doing: Mapping[str, MemberPhase]) -> None:
    turn.state = replace(turn.state, doing=MappingProxyType(dict(doing)))


def _on_exit(turn: Turn, task: str, end: Exit) -> None:
    _do(turn, {name: phase for name, phase in turn.state.doing.items() if name != task})
    state, leaving = turn.state, isinstance(turn.state.stage, pa.Leaving)
    report(turn, ev.MemberEnded(run=state.plan.run, device=state.me, task=task, exit=end))
    if task == state.plan.chief.name and not leaving:
        turn.effects.append(pa.FindOutputs())
    if state.doing:
        say_doing(turn)
    elif not leaving:
        enter(turn, pa.Trained())


# --- leaving -------------------------------------------------------------------------------------------


def _on_wait_over(turn: Turn, wait: Wait) -> None:
    match wait, turn.state.stage:
        case "consent", _:
            decline(turn, problems.no_consent(["this laptop"]))
        case "receive" | "launch", _:
            decline(turn, problems.never_launched(turn.state.starter_name))
        case "look", _:
            patience.look(turn)
        case "away", _:
            patience.on_away_over(turn)
        case "farewell", pa.Leaving() as leaving:
            enter(turn, replace(leaving, starter_lost=True))
