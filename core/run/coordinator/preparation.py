"""A run before its trainers start: members are asked, receive the files and choose their ports. Pure."""

from __future__ import annotations

from dataclasses import replace

from core.cluster.tf_config import check
from core.home.certificate import MAX_DER_BYTES
from core.run import problems
from core.run.coordinator import patience
from core.run.coordinator import state as co
from core.run.coordinator.ending import fail
from core.run.turn import CoordinatorTurn
from core.vocabulary import events as ev
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest
from core.vocabulary.phases import Preparing, Starting
from core.vocabulary.plan import Plan, with_ports


def begin(turn: CoordinatorTurn) -> None:
    state = turn.state
    turn.share(ev.RunPlanned(plan=state.plan))
    turn.show(Preparing())
    patience.note_progress(turn)
    patience.mind_preparing(turn)
    listing = state.listing
    said = state.manifest if listing is None else Manifest(script=state.manifest.script, files=())
    for device in state.parts:
        own = device == state.me
        if listing is not None and not own:
            turn.effects.append(co.OfferFiles(device, listing))
        request = ms.Prepare(
            plan=state.plan,
            manifest=state.manifest if own else said,
            listing=None if own else listing,
            source=state.source if own else "",
            checkpoint=state.checkpoint,
            texts={} if own else dict(state.texts),
        )
        turn.send(device, request)


def on_consent(turn: CoordinatorTurn, device: DeviceId, total_bytes: int) -> None:
    state, part = turn.state, turn.state.parts[device]
    if part.joined or not isinstance(state.stage, co.Assembling):
        return
    turn.know(device, replace(part, joined=True))
    if device != state.me:
        # Events that it missed while its user was asked.
        for event in (
            ev.RunPlanned(plan=state.plan),
            ev.RunPhaseChanged(run=state.plan.run, phase=state.phase),
        ):
            turn.send(device, ms.Mirrored(event=event))
    if total_bytes:
        _let_fetch(turn, device)
    turn.wait("receive", limits.RECEIVE_S)
    patience.mind_preparing(turn)


def _let_fetch(turn: CoordinatorTurn, device: DeviceId) -> None:
    """Members receive in a chain: each gives on what it has received, so that this laptop sends a file once.
    What the giver does not have, they fetch from here."""
    state = turn.state
    turn.effects.append(co.OfferFiles(device))
    giver = state.me
    if state.receiver is not None and state.parts[state.receiver].is_there:
        giver = state.receiver
        turn.send(giver, ms.GiveFiles(run=state.plan.run, to=device))
    turn.send(device, ms.FilesFrom(run=state.plan.run, giver=giver))
    if device != state.me:
        turn.state = replace(turn.state, receiver=device)


def on_prepared(turn: CoordinatorTurn, device: DeviceId, prepared: ms.Prepared) -> None:
    part = turn.state.parts[device]
    if not part.joined or part.prepared is not None:
        return
    if not _is_complete(turn.state.plan, device, prepared):
        fail(turn, problems.bad_message(turn.state.name(device)))
        return
    turn.know(device, replace(part, prepared=prepared))
    patience.mind_preparing(turn)
    launch_if_ready(turn)


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


def launch_if_ready(turn: CoordinatorTurn) -> None:
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
