"""The coordinator of a run: ``step(state, input, now_s)`` → the state then, and effects. Pure.

Invariants: one last phase and nothing after it; before it, a wait is pending or a trainer runs; every member
that is still linked is told that the run is over. The first cause of a failure is the one that is named.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from msgspec import structs

from core.cluster.tf_config import check
from core.home.certificate import MAX_DER_BYTES
from core.run import problems
from core.run.coordinator import patience
from core.run.coordinator import state as co
from core.run.coordinator.ending import (
    Turn,
    abandon,
    close,
    conclude,
    emit,
    fail,
    fail_with_script,
    know,
    look_for_end,
    on_first_step,
    on_met,
    on_stop_too_slow,
    outputs_lost,
    release,
    say,
    send,
    show,
    stop,
)
from core.run.draft import Draft
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import RunEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import From, Message
from core.vocabulary.phases import Exit, Preparing, Starting
from core.vocabulary.plan import Plan, with_ports
from core.vocabulary.plausible import sound

Stepped = tuple[co.Coordination, tuple[co.Effect, ...]]


def step(state: co.Coordination, input: co.Input, now_s: float) -> Stepped:
    """One step. After the last phase nothing happens any more."""
    if isinstance(state.stage, co.Over):
        return state, ()
    turn: Turn = Draft(state, now_s)
    _take(turn, input)
    return turn.state, tuple(turn.effects)


def _take(turn: Turn, input: co.Input) -> None:
    state = turn.state
    match input:
        case co.Begun():
            _begin(turn)
        case From(device, message) if device in state.parts and state.parts[device].linked:
            _on_message(turn, device, message)
        case co.SendingFailed(device, problem) if isinstance(state.stage, co.Assembling):
            fail(turn, problems.declined(state.name(device), problem))
        case From(device, ms.Resumed(run=run)) if device in state.parts and run == state.plan.run:
            patience.turn_away(turn, device)
        case co.MemberLost(device, problem) if device in state.parts and state.parts[device].takes_part:
            _on_lost(turn, device, problem)
        case co.MemberReturned(device) if device in state.parts:
            patience.welcome(turn, device)
            _launch_if_ready(turn)
        case co.StopWanted(by, force):
            _on_stop(turn, by, force)
        case co.WaitedOn():
            patience.wait_on(turn)
        case co.NodeEnds(by):
            close(turn, by)
        case co.GivesWay(problem) if isinstance(state.stage, co.Assembling):
            fail(turn, problem)
        case co.Broke(problem):
            fail(turn, problem)
        case TimerFired(wait) if wait in state.waits:
            turn.fired(wait)
            _on_wait_over(turn, wait)
        case co.OutputsCame() if "outputs" in state.waits:
            patience.note_progress(turn)
            turn.wait("outputs", limits.OUTPUTS_S)
        case co.OutputsStored(paths) if state.outputs in ("coming", "cut"):
            turn.state = replace(state, outputs="here", tally=replace(state.tally, outputs=tuple(paths)))
            send(turn, state.plan.chief.device, ms.OutputsReceived(run=state.plan.run))
            look_for_end(turn)
        case co.OutputsFailed(problem) if state.outputs == "coming":
            turn.state = replace(state, outputs="here")
            outputs_lost(turn, problem)
        case _:
            pass


# --- before the launch -------------------------------------------------------------------------------------


def _begin(turn: Turn) -> None:
    state = turn.state
    emit(turn, ev.RunPlanned(plan=state.plan))
    show(turn, Preparing())
    patience.note_progress(turn)
    patience.mind_preparing(turn)
    for device in state.parts:
        request = patience.request(state)
        own = device == state.me
        send(turn, device, structs.replace(request, source=state.source, texts={}) if own else request)


def _on_message(turn: Turn, device: DeviceId, message: Message) -> None:
    state = turn.state
    if getattr(message, "run", state.plan.run) != state.plan.run:
        return
    match message:
        case ms.FilesWanted(files=files):
            _on_consent(turn, device, files)
        case ms.Prepared():
            _on_prepared(turn, device, message)
        case ms.Declined(problem=problem):
            if not isinstance(state.stage, co.Assembling):  # it has left: no end of its trainers will be told
                know(turn, device, replace(state.parts[device], linked=False))
                if problem.code in problems.BY_A_USER:
                    close(turn, state.name(device), problem)
                    return
            fail(turn, problems.declined(state.name(device), problem))
        case ms.StopAsked(force=force):
            _on_stop(turn, state.name(device), force)
        case ms.Reported(event=event, number=number):
            if _is_new(turn, device, number):
                _on_report(turn, device, event)
        case ms.StandTold(task=task, stand=stand):
            patience.hear_stand(turn, device, task, stand)
        case ms.Resumed(heard=heard):
            patience.repeat(turn, device, heard)
        case ms.OutputsOffered():
            _on_outputs_offered(turn, device, message)
        case _:
            pass


def _on_consent(turn: Turn, device: DeviceId, files: tuple[int, ...]) -> None:
    state, part = turn.state, turn.state.parts[device]
    if (part.joined and not part.may_ask_again) or not isinstance(state.stage, co.Assembling):
        return
    know(turn, device, replace(part, joined=True, may_ask_again=False))
    if device != state.me and not part.joined:
        # What it missed while its user was asked.
        for event in (
            ev.RunPlanned(plan=state.plan),
            ev.RunPhaseChanged(run=state.plan.run, phase=state.phase),
        ):
            send(turn, device, ms.Mirrored(event=event))
    if files and part.prepared is None:
        turn.effects.append(co.SendFiles(device, files))
    turn.wait("receive", limits.RECEIVE_S)
    patience.mind_preparing(turn)


def _on_prepared(turn: Turn, device: DeviceId, prepared: ms.Prepared) -> None:
    part = turn.state.parts[device]
    if isinstance(turn.state.stage, co.Running) and part.prepared is not None:
        _send_launch(turn, device)  # the first one was lost with the link
    if not part.joined or part.prepared is not None:
        return
    if not _is_complete(turn.state.plan, device, prepared):
        fail(turn, problems.bad_message(turn.state.name(device)))
        return
    know(turn, device, replace(part, prepared=prepared))
    patience.mind_preparing(turn)
    _launch_if_ready(turn)


def _is_complete(plan: Plan, device: DeviceId, prepared: ms.Prepared) -> bool:
    """Whether there is what every one of the device's tasks needs, and no more."""
    tasks = {task.name for task in plan.tasks_of(device)}
    ports, certificates = prepared.ports, prepared.certificates
    lowest = 0 if plan.solo else 1024
    return (
        set(ports) == tasks
        and all(lowest <= port <= 65535 for port in ports.values())
        and set(certificates) == (tasks if plan.has_keys else set())
        and all(0 < len(certificate) <= MAX_DER_BYTES for certificate in certificates.values())
    )


def _launch_if_ready(turn: Turn) -> None:
    state = turn.state
    ready = all(part.prepared is not None for part in state.parts.values()) and not state.is_any_away
    if ready and isinstance(state.stage, co.Assembling):
        _launch(turn)


def _launch(turn: Turn) -> None:
    prepared = {device: part.prepared for device, part in turn.state.parts.items() if part.prepared}
    plan = with_ports(
        turn.state.plan,
        {device: each.ports for device, each in prepared.items()},
        {device: each.certificates for device, each in prepared.items()},
    )
    try:
        check(plan)
    except TandemError as error:
        fail(turn, error.problem)
        return
    turn.state = replace(turn.state, plan=plan, stage=co.Running())
    patience.note_progress(turn)
    emit(turn, ev.RunPlanned(plan=plan))
    show(turn, Starting())
    turn.wait("start", turn.state.start_s)
    for device in turn.state.parts:
        _send_launch(turn, device)


def _send_launch(turn: Turn, device: DeviceId) -> None:
    send(turn, device, ms.Launch(plan=turn.state.plan, meet_s=turn.state.load_s))


# --- training ----------------------------------------------------------------------------------------------


def _is_new(turn: Turn, device: DeviceId, number: int) -> bool:
    """What is said again on a new link may have been heard on the old one."""
    part = turn.state.parts[device]
    if number > part.heard:
        know(turn, device, replace(part, heard=number))
    return number == 0 or number > part.heard


def _on_report(turn: Turn, device: DeviceId, event: RunEvent) -> None:
    """A member speaks for itself alone, and only of what happens at a member."""
    plan = turn.state.plan
    if getattr(event, "run", None) != plan.run or getattr(event, "device", None) != device:
        return
    match event:
        case ev.MemberPhaseChanged(phase=phase):
            know(turn, device, replace(turn.state.parts[device], phase=phase))
            emit(turn, event)
            if phase == "receiving" and "receive" in turn.state.waits:
                turn.wait("receive", limits.RECEIVE_S)
            if phase == "training":
                on_met(turn)
        case ev.MemberMeasured(expectation=expectation):
            if device == plan.chief.device and sound(expectation, plan):
                emit(turn, event)
        case ev.MemberProgressed() | ev.MemberEndedEpoch():
            on_first_step(turn)
            patience.note_progress(turn)
            emit(turn, event)
        case ev.MemberLogged(lines=lines):
            # Each task's words are kept in memory and in a file of their own: no made-up tasks.
            if lines.task in {task.name for task in plan.tasks_of(device)}:
                emit(turn, event)
        case ev.MemberEnded():
            _on_exit(turn, device, event)
        case _:
            pass


def _on_exit(turn: Turn, device: DeviceId, event: ev.MemberEnded) -> None:
    state, part, end = turn.state, turn.state.parts[device], event.exit
    own = {task.name for task in state.plan.tasks_of(device)}
    if isinstance(state.stage, co.Assembling) or event.task not in own or event.task in part.exits:
        return
    part = replace(part, exits=MappingProxyType({**part.exits, event.task: end}))
    if own <= set(part.exits):
        part = replace(part, phase="ended")
    know(turn, device, part)
    emit(turn, event)
    if _is_failure(turn.state, end, event.task):
        problem = problems.trainer_failed(state.plan, device, event.task, end)
        if end.reason == "script-error":
            fail_with_script(turn, problem, device)
        else:
            cause = None if end.reason in problems.OWN_FAULTS else patience.cut_off(turn)
            weak = cause is None and end.reason in problems.CONSEQUENCES
            if weak:
                problem = patience.cut_before(turn) or problem
            fail(turn, cause or problem, weak=weak)
    look_for_end(turn)


def _is_failure(state: co.Coordination, end: Exit, task: str) -> bool:
    if end.reason == "finished":
        return False
    match state.stage:
        case co.Ending(cause=cause):
            # What was killed has no say; a fault of its own may still be the better cause.
            return cause is not None and end.reason in problems.OWN_FAULTS
        case co.Halting(force=force):
            return force == 0 and end.reason in problems.OWN_FAULTS
    return not (state.served() and task not in {each.name for each in state.own_enders()})


# --- ending ------------------------------------------------------------------------------------------------


def _on_outputs_offered(turn: Turn, device: DeviceId, offer: ms.OutputsOffered) -> None:
    state, chief = turn.state, turn.state.plan.chief
    if device != chief.device or chief.name not in state.parts[device].exits:
        return
    if state.outputs == "here":
        send(turn, device, ms.OutputsReceived(run=state.plan.run))  # the word of it was lost with a link
    if state.outputs not in ("expected", "cut") or isinstance(state.stage, co.Ending):
        return
    turn.state = replace(state, outputs="coming")
    if offer.problem is not None:
        say(turn, str(offer.problem))
    if "outputs" in state.waits:
        turn.wait("outputs", limits.OUTPUTS_S)
    turn.effects.append(co.TakeOutputs(device, offer.manifest))


def _on_stop(turn: Turn, by: str, force: int) -> None:
    if not isinstance(turn.state.stage, co.Running):
        stop(turn, by, force)
    elif not patience.stop_without(turn, by):
        stop(turn, by, max(force, patience.least_force(turn)))


def _on_lost(turn: Turn, device: DeviceId, problem: Problem) -> None:
    if patience.may_wait_for(turn, device, problem):
        patience.miss(turn, device, problem)
        return
    know(turn, device, replace(turn.state.parts[device], linked=False, away_s=None, phase="ended"))
    state = turn.state
    words = "its link was lost"
    emit(turn, ev.MemberPhaseChanged(run=state.plan.run, device=device, phase="ended", words=words))
    verdict = problems.lost_device(state.plan, device, problem)
    done = all(task.name in state.parts[device].exits for task in state.plan.tasks_of(device))
    needed = device == state.plan.chief.device and state.outputs != "here"
    match state.stage:
        case co.Ending(weak=weak):
            if weak and not done:
                fail(turn, verdict)  # TensorFlow misses a silent laptop a little before its link does
            look_for_end(turn)
        case _ if done and needed:
            outputs_lost(turn, problem)
        case _ if done:
            look_for_end(turn)
        case co.Halting():
            abandon(turn, verdict)  # its peers would hang at their next step; the user wanted the end anyway
        case _ if problem.code in problems.BY_A_USER and not isinstance(state.stage, co.Assembling):
            close(turn, state.name(device))
        case _:
            fail(turn, verdict)


def _on_wait_over(turn: Turn, wait: Wait) -> None:
    state = turn.state
    match wait, state.stage:
        case "look", _:
            patience.look(turn)
        case "away", _:
            patience.on_away_over(turn)
        case "consent", _:
            late = [device for device, part in state.parts.items() if not part.joined]
            fail(turn, problems.no_consent([state.name(device) for device in late]))
        case "receive", _:
            late = [device for device, part in state.parts.items() if part.joined and part.prepared is None]
            fail(turn, problems.not_prepared([state.name(device) for device in late]))
        case "start", _:
            late = [d for d, part in state.parts.items() if part.phase not in ("training", "ended")]
            ports = [task.port for device in late for task in state.plan.tasks_of(device) if task.port]
            fail(turn, problems.not_started([state.name(device) for device in late], ports, state.start_s))
        case "cause", co.Failing(cause):
            abandon(turn, cause, cause=cause, weak=True)
        case "cause", co.Keeping(cause):
            abandon(turn, cause, cause=cause)
        case "end", _:
            say(turn, problems.ended_by_force([state.name(device) for device in state.unfinished()]))
            conclude(turn)
        case "stop", co.Halting() as halting:
            on_stop_too_slow(turn, halting)
        case "finish", co.Releasing(force=1):
            release(turn, 2)
        case "finish", _:
            fail(turn, problems.still_running([state.name(device) for device in state.unfinished()]))
        case "outputs", _:
            outputs_lost(turn)
