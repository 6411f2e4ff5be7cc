"""The coordinator of a run: ``step(state, input, now_s)`` → the next state, and effects. Pure.

Invariants: nothing follows the last phase; before it, a wait is pending or a trainer runs; every linked
member learns that the run is over. The first cause of a failure is the one that is reported.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from core.cluster.tf_config import check
from core.home.certificate import MAX_DER_BYTES
from core.run import problems
from core.run.coordinator import losses, patience, verdicts
from core.run.coordinator import state as co
from core.run.coordinator.ending import (
    abandon,
    check_for_end,
    close,
    conclude,
    fail,
    fail_with_script,
    on_first_step,
    on_met,
    on_stop_too_slow,
    outputs_lost,
    release,
    stop,
)
from core.run.turn import CoordinatorTurn
from core.runtime.timers import TimerFired
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import BY_A_USER, IllegalTransition, TandemError
from core.vocabulary.events import MirroredEvent
from core.vocabulary.ids import DeviceId
from core.vocabulary.limits import Wait
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Preparing, Starting
from core.vocabulary.plan import Plan, with_ports
from core.vocabulary.plausible import sound
from core.vocabulary.traffic import From, LinkAway, LinkBack, LinkLost

Stepped = tuple[co.Coordination, tuple[co.Effect, ...]]


def step(state: co.Coordination, input: co.Input, now_s: float) -> Stepped:
    """One step. After the last phase nothing happens any more."""
    if isinstance(state.stage, co.Over):
        return state, ()
    turn = CoordinatorTurn(state, now_s)
    _on_input(turn, input)
    return turn.state, tuple(turn.effects)


def _on_input(turn: CoordinatorTurn, input: co.Input) -> None:
    state = turn.state
    match input:
        case co.Begun():
            _begin(turn)
        case From(device, message) if device in state.parts and state.parts[device].takes_part:
            _on_message(turn, device, message)
        case From(device, ms.EventTold(event=ev.MemberEnded() as end)) if device in state.parts:
            _on_report(turn, device, end)  # it has left, and can come back from now on
        case co.SendingFailed(device, problem) if isinstance(state.stage, co.Assembling):
            fail(turn, problems.declined(state.name(device), problem))
        case LinkAway(device, problem) if device in state.parts and state.parts[device].takes_part:
            losses.on_away(turn, device, problem)
        case LinkLost(device, problem) if device in state.parts and state.parts[device].linked:
            turn.update_part(device, replace(state.parts[device], linked=False))
            if state.parts[device].takes_part:
                losses.on_lost(turn, device, problem)
        case LinkBack(device) if device in state.parts:
            patience.on_back(turn, device)
            _launch_if_ready(turn)
        case co.StopWanted(by, force):
            _on_stop(turn, by, force)
        case co.GoesOn():
            losses.stop_for(turn, input)
        case co.WaitedOn():
            patience.go_on_waiting(turn)
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
        case co.OutputsStored(paths) if state.outputs == "coming":
            turn.state = replace(state, outputs="here", tally=state.tally.knowing(outputs=tuple(paths)))
            turn.send(state.chief.device, ms.OutputsReceived(run=state.plan.run))
            check_for_end(turn)
        case co.OutputsFailed(problem) if state.outputs == "coming":
            turn.state = replace(state, outputs="here")
            outputs_lost(turn, problem)
        case LinkAway() | LinkLost() | LinkBack():
            pass  # from a laptop that is no member, or no longer one
        case From() | co.SendingFailed() | co.GivesWay() | TimerFired():
            pass  # from a laptop that is no member, or too late
        case co.OutputsCame() | co.OutputsStored() | co.OutputsFailed():
            pass  # too late
        case _:
            assert_never(input)


def _begin(turn: CoordinatorTurn) -> None:
    state = turn.state
    turn.share(ev.RunPlanned(plan=state.plan))
    turn.show(Preparing())
    patience.note_progress(turn)
    patience.update_preparing_waits(turn)
    for device in state.parts:
        if state.request.listing is not None and device != state.me:
            turn.effects.append(co.OfferFiles(device, state.request.listing))
        turn.send(device, state.request if device == state.me else co.for_others(state.request))


def _on_consent(turn: CoordinatorTurn, device: DeviceId, total_bytes: int) -> None:
    state, part = turn.state, turn.state.parts[device]
    if part.joined or not isinstance(state.stage, co.Assembling):
        return
    turn.update_part(device, replace(part, joined=True))
    if device != state.me:
        # Events that it missed while its user was asked.
        for event in (
            ev.RunPlanned(plan=state.plan),
            ev.RunPhaseChanged(run=state.plan.run, phase=state.phase),
        ):
            turn.send(device, ms.EventTold(event=event))
    if total_bytes:
        _let_fetch(turn, device)
    turn.wait("receive", limits.RECEIVE_S)
    patience.update_preparing_waits(turn)


def _let_fetch(turn: CoordinatorTurn, device: DeviceId) -> None:
    """Members receive in a chain: each forwards what it has received, so that this laptop sends a file once.
    They fetch what their giver does not have from here."""
    state = turn.state
    turn.effects.append(co.OfferFiles(device))
    giver = state.me
    if state.receiver is not None and state.parts[state.receiver].is_there:
        giver = state.receiver
        turn.send(giver, ms.GiveFiles(run=state.plan.run, to=device))
    turn.send(device, ms.FilesFrom(run=state.plan.run, giver=giver))
    if device != state.me:
        turn.state = replace(turn.state, receiver=device)


def _on_prepared(turn: CoordinatorTurn, device: DeviceId, prepared: ms.Prepared) -> None:
    part = turn.state.parts[device]
    if not part.joined or part.prepared is not None:
        return
    if not _is_complete(turn.state.plan, device, prepared):
        fail(turn, problems.bad_message(turn.state.name(device)))
        return
    turn.update_part(device, replace(part, prepared=prepared))
    patience.update_preparing_waits(turn)
    _launch_if_ready(turn)


def _is_complete(plan: Plan, device: DeviceId, prepared: ms.Prepared) -> bool:
    """Whether it covers exactly what the device's tasks need."""
    tasks = {task.name for task in plan.tasks_of(device)}
    ports, certificates = prepared.ports, prepared.certificates
    lowest = 0 if plan.solo else 1024
    return (
        set(ports) == tasks
        and all(lowest <= port <= 65535 for port in ports.values())
        and set(certificates) == (set() if plan.solo else tasks)
        and all(0 < len(certificate) <= MAX_DER_BYTES for certificate in certificates.values())
    )


def _launch_if_ready(turn: CoordinatorTurn) -> None:
    state = turn.state
    ready = all(part.prepared is not None for part in state.parts.values()) and not state.is_any_away
    if ready and isinstance(state.stage, co.Assembling):
        _launch(turn)


def _launch(turn: CoordinatorTurn) -> None:
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
    turn.share(ev.RunPlanned(plan=plan))
    turn.show(Starting())
    turn.wait("start", turn.state.start_s)
    for device in turn.state.parts:
        turn.send(device, ms.Launch(plan=plan, meet_s=turn.state.load_s))


def _on_message(turn: CoordinatorTurn, device: DeviceId, message: Message) -> None:
    state = turn.state
    if isinstance(message, ms.RunMessage) and message.run != state.plan.run:
        return
    match message:
        case ms.FilesWanted(total_bytes=total_bytes):
            _on_consent(turn, device, total_bytes)
        case ms.Prepared():
            _on_prepared(turn, device, message)
        case ms.Declined(problem=problem):
            if verdicts.may_go_on_without(state, device):
                losses.go_on_without(turn, device, problem)
                return
            if not isinstance(state.stage, co.Assembling):  # it has left: its trainers will report no end
                turn.update_part(device, replace(state.parts[device], takes_part=False, away_s=None))
                if problem.code in BY_A_USER:
                    close(turn, state.name(device), problem)
                    return
            fail(turn, problems.declined(state.name(device), problem))
        case ms.StopAsked(force=force):
            _on_stop(turn, state.name(device), force)
        case ms.EventTold(event=event):
            _on_report(turn, device, event)
        case ms.StatusTold(task=task, status=status):
            patience.on_status(turn, device, task, status)
        case ms.OutputsOffered():
            _on_outputs_offered(turn, device, message)
        case _:
            raise IllegalTransition(f"{type(message).__name__} is not a message that a member sends")


# --- training ----------------------------------------------------------------------------------------------


def _on_report(turn: CoordinatorTurn, device: DeviceId, event: MirroredEvent) -> None:
    """Accept a member's report only about itself, and only events that happen at a member."""
    plan = turn.state.plan
    if not isinstance(event, ev.MemberEvent) or (event.run, event.device) != (plan.run, device):
        return
    match event:
        case ev.MemberPhaseChanged(phase=phase):
            turn.update_part(device, replace(turn.state.parts[device], phase=phase))
            turn.share(event)
            if phase == "receiving":
                patience.on_file_work(turn, device)
            if phase == "training":
                on_met(turn)
        case ev.MemberMeasured(expectation=expectation):
            if device == turn.state.chief.device and sound(expectation, plan):
                turn.share(event)
        case ev.MemberProgressed() | ev.MemberEndedEpoch():
            on_first_step(turn)
            patience.note_progress(turn)
            turn.share(event)
        case ev.MemberLogged(lines=lines):
            if lines.task in {task.name for task in plan.tasks_of(device)}:
                turn.share(event)
        case ev.MemberEnded():
            _on_exit(turn, device, event)


def _on_exit(turn: CoordinatorTurn, device: DeviceId, event: ev.MemberEnded) -> None:
    state, part, end = turn.state, turn.state.parts[device], event.exit
    own = {task.name for task in state.plan.tasks_of(device)}
    if not (part.takes_part or part.left):
        return
    if isinstance(state.stage, co.Assembling) or event.task not in own or event.task in part.exits:
        return
    part = replace(part, exits=MappingProxyType({**part.exits, event.task: end}))
    if own <= set(part.exits):
        part = replace(part, phase="ended")
    turn.update_part(device, part)
    turn.share(event)
    if part.left:
        return
    if not losses.go_back(turn, device, end) and losses.is_failure(turn.state, end, event.task):
        problem = problems.trainer_failed(state.plan, device, event.task, end)
        if losses.is_loss(end) and losses.lose(turn, device, problems.what_ended(end)):
            return
        if end.reason == "script-error":
            fail_with_script(turn, problem, device)
        else:
            cause = None if end.reason in problems.OWN_FAULTS else patience.cut_off(turn)
            weak = cause is None and end.reason in problems.CONSEQUENCES
            if weak:
                problem = patience.cut_before(turn) or problem
            fail(turn, cause or problem, weak=weak)
    check_for_end(turn)


# --- ending ------------------------------------------------------------------------------------------------


def _on_outputs_offered(turn: CoordinatorTurn, device: DeviceId, offer: ms.OutputsOffered) -> None:
    state, chief = turn.state, turn.state.chief
    if device != chief.device or chief.name not in state.parts[device].exits:
        return
    if state.outputs != "expected" or isinstance(state.stage, co.Ending):
        return
    turn.state = replace(state, outputs="coming")
    if offer.problem is not None:
        turn.log(str(offer.problem))
    if "outputs" in state.waits:
        turn.wait("outputs", limits.OUTPUTS_S)
    turn.effects.append(co.TakeOutputs(device, offer.manifest))


def _on_stop(turn: CoordinatorTurn, by: str, force: int) -> None:
    if turn.state.back is not None:  # it was stopping only to go on
        turn.state = replace(turn.state, back=None)
        if isinstance(turn.state.stage, co.Halting):
            turn.enter(replace(turn.state.stage, by=by))
            return
    if not isinstance(turn.state.stage, co.Running):
        stop(turn, by, force)
    elif not patience.stop_without(turn, by):
        stop(turn, by, max(force, patience.least_force(turn)))


def _on_wait_over(turn: CoordinatorTurn, wait: Wait) -> None:
    state = turn.state
    match wait, state.stage:
        case "look", _:
            patience.update_verdicts(turn)
        case "away", _:
            losses.on_away_over(turn)
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
        case "cause", co.Failing(cause, weak):
            abandon(turn, cause, cause=cause, weak=weak)
        case "cause", co.Keeping(cause):
            abandon(turn, cause, cause=cause)
        case "end", _:
            turn.log(problems.ended_by_force([state.name(device) for device in state.unfinished()]))
            conclude(turn)
        case "stop", co.Halting() as halting:
            on_stop_too_slow(turn, halting)
        case "finish", co.Releasing(force=1):
            release(turn, 2)
        case "finish", _:
            fail(turn, problems.still_running([state.name(device) for device in state.unfinished()]))
        case "outputs", _:
            outputs_lost(turn)
