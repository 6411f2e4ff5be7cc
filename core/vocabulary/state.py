"""The whole state of a node as one immutable snapshot, and the pure function that folds events into it."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import asdict, replace

from core.vocabulary import events as ev
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Difference, ProjectFile
from core.vocabulary.phases import NEXT, Exit, MemberPhase, Phase, Planning, ended
from core.vocabulary.plan import Plan
from core.vocabulary.plausible import sound, sound_summary, sound_waits
from core.vocabulary.progress import EpochEnd, Expectation, Progress, Summary
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.settings import Settings, own_name
from core.vocabulary.versions import Versions

LOG_LINES_KEPT = 400
"""Lines of a task's output that the state carries for a screen that opens late."""
LOG_LINE_LENGTH = 5_000
"""Characters of one such line: an honest trainer's are shorter, a peer might send megabytes."""


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """This laptop."""

    device: DeviceId
    name: str
    addresses: tuple[str, ...]
    versions: Versions
    hardware: Hardware
    settings: Settings
    home: str
    reading: Reading | None = None


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """Another laptop: seen, paired, connected, or several of these.

    ``name`` and ``addresses`` are what it says of itself; only ``linked`` is proven.
    """

    device: DeviceId
    name: str
    nickname: str = ""
    addresses: tuple[str, ...] = ()
    seen: bool = False
    paired: bool = False
    linked: bool = False
    busy: bool = False
    policy: Literal["ask", "always"] = "ask"
    versions: Versions | None = None
    hardware: Hardware | None = None
    reading: Reading | None = None
    problem: Problem | None = None
    """Why there is no link, or why no run is possible over it."""

    @property
    def shown_name(self) -> str:
        return self.nickname or self.name or self.device[:8]


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """The pairing under way, or the failure of the last one until the next begins."""

    stage: Literal["connecting", "comparing", "waiting", "failed", "done"]
    incoming: bool
    name: str
    address: str
    device: DeviceId | None = None
    code: str = ""
    warning: Problem | None = None
    problem: Problem | None = None


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """A peer's request that this user has to decide."""

    run: RunId
    device: DeviceId
    name: str
    script: str
    arguments: tuple[str, ...]
    project: str
    files: tuple[ProjectFile, ...]
    changed: bool
    checkpoint_bytes: int = 0
    network: str = ""
    open_port: bool = False
    differs: dict[str, Difference] = {}


class MemberState(msgspec.Struct, frozen=True, kw_only=True):
    """One device's part in the run."""

    phase: MemberPhase = "waiting"
    words: str = ""
    done: int = 0
    total: int = 0
    progress: Progress | None = None
    whole: Progress | None = None
    """Of the newest step with a whole batch."""
    epoch: EpochEnd | None = None
    exits: dict[str, Exit] = {}
    """By task name."""
    log: dict[str, tuple[str, ...]] = {}
    """The newest lines by task name."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The present run, or the last one until the next begins."""

    plan: Plan
    phase: Phase
    members: dict[DeviceId, MemberState]
    expectation: Expectation | None = None
    """What the members measured before the newest fit's first step."""
    summary: Summary | None = None
    waiting: ev.WaitingChanged | None = None
    """Whom it waits for now; None: for nobody."""

    @property
    def over(self) -> bool:
        return ended(self.phase)


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a screen needs, but for plots (``GetRun`` and the events carry their points)."""

    me: Me | None = None
    devices: dict[DeviceId, Device] = {}
    pairing: Pairing | None = None
    consents: tuple[Consent, ...] = ()
    run: Run | None = None
    checkpoints: dict[RunId, ev.CheckpointFound] = {}
    """On laptops that are linked; newer than ours when they were found."""
    fetch: ev.CheckpointCame | None = None
    notices: tuple[Problem, ...] = ()
    stopped: bool = False

    @property
    def busy(self) -> bool:
        return self.run is not None and not self.run.over


def apply(state: State, event: ev.Event) -> State:
    """``state`` after ``event``. Raises IllegalTransition for an event that cannot follow."""
    if isinstance(event, ev.RunEvent):
        run = _apply_to_run(state.run, event)
        return replace(state, run=run, devices=_idle_after(run, event, state.devices))
    match event:
        case ev.PairingBegan() | ev.PairingCodeShown() | ev.PairingAnswered() | ev.PairingEnded():
            return replace(state, pairing=_apply_to_pairing(state.pairing, event))
        case (
            ev.NodeStarted()
            | ev.AddressesChanged()
            | ev.SettingsChanged()
            | ev.NoticeRaised()
            | ev.NodeStopped()
            | ev.ConsentAsked()
            | ev.ConsentSettled()
        ):
            return _apply_to_node(state, event)
        case ev.HistoryChanged():
            return state  # the history is asked for, not carried along
        case ev.CheckpointFound():
            return replace(state, checkpoints={**state.checkpoints, event.run: event})
        case ev.CheckpointCame() | ev.FetchEnded():
            return replace(state, fetch=event if isinstance(event, ev.CheckpointCame) else None)
        case _:
            return _apply_to_devices(state, event)


def _apply_to_node(state: State, event: ev.Event) -> State:
    match event:
        case ev.NodeStarted():
            return State(
                me=Me(
                    device=event.device,
                    name=event.name,
                    addresses=event.addresses,
                    versions=event.versions,
                    hardware=event.hardware,
                    settings=event.settings,
                    home=event.home,
                )
            )
        case ev.AddressesChanged():
            return replace(state, me=replace(_me(state), addresses=event.addresses))
        case ev.SettingsChanged():
            me = _me(state)
            name = me.name if event.settings.name == me.settings.name else own_name(event.settings)
            return replace(state, me=replace(me, settings=event.settings, name=name))
        case ev.NoticeRaised():
            others = tuple(notice for notice in state.notices if notice.code != event.problem.code)
            return replace(state, notices=(*others, event.problem)[-20:])
        case ev.ConsentAsked():
            consent = Consent(**asdict(event))
            return replace(state, consents=(*state.consents, consent))
        case ev.ConsentSettled():
            return replace(state, consents=tuple(c for c in state.consents if c.run != event.run))
        case ev.NodeStopped():
            return replace(state, stopped=True)
        case _:
            raise IllegalTransition(f"{event} is not about the node")


def _apply_to_devices(state: State, event: ev.Event) -> State:
    match event:
        case ev.TelemetryReported() if state.me is not None and event.device == state.me.device:
            return replace(state, me=replace(state.me, reading=event.reading))
        case ev.SealChanged(seal=seal) if state.me is not None and event.device == state.me.device:
            return replace(state, me=replace(state.me, versions=replace(state.me.versions, seal=seal)))
        case ev.DeviceFound():
            device = _device(state, event.device, event.name)
            # A record proves nothing: it must not rename a device whose own word we have.
            name = device.name if device.paired or device.linked else event.name
            return _with(state, replace(device, name=name, addresses=event.addresses, seen=True))
        case ev.DevicePaired():
            device = _device(state, event.device, event.name)
            return _with(
                state,
                replace(
                    device,
                    name=event.name,
                    paired=True,
                    nickname=event.nickname,
                    policy=event.policy,
                    addresses=event.addresses or device.addresses,
                    problem=None,
                ),
            )
        case ev.LinkUp():
            device = _device(state, event.device, event.name)
            return _with(
                state,
                replace(
                    device,
                    name=event.name,
                    linked=True,
                    busy=event.busy,
                    versions=event.versions,
                    hardware=event.hardware,
                    problem=event.problem,
                    addresses=tuple(dict.fromkeys((event.address, *device.addresses))),
                ),
            )
    known = state.devices.get(getattr(event, "device", DeviceId("")))
    if known is None:
        return state
    match event:
        case ev.DeviceGone():
            return _with_or_without(state, replace(known, seen=False))
        case ev.DeviceForgotten():
            kept = Device(device=known.device, name=known.name, addresses=known.addresses, seen=known.seen)
            return _with_or_without(state, kept)
        case ev.DeviceRenamed():
            return _with(state, replace(known, nickname=event.nickname))
        case ev.CodePolicyChanged():
            return _with(state, replace(known, policy=event.policy))
        case ev.LinkDown():
            there = {run: found for run, found in state.checkpoints.items() if found.device != event.device}
            lost = replace(known, linked=False, busy=False, problem=event.problem)
            return _with(replace(state, checkpoints=there), lost)
        case ev.BusyChanged():
            return _with(state, replace(known, busy=event.busy))
        case ev.SealChanged(seal=seal) if known.versions is not None:
            return _with(state, replace(known, versions=replace(known.versions, seal=seal)))
        case ev.TelemetryReported():
            return _with(state, replace(known, reading=event.reading))
        case _:
            raise IllegalTransition(f"{event} is not about a device")


def _apply_to_pairing(pairing: Pairing | None, event: ev.Event) -> Pairing | None:
    match event:
        case ev.PairingBegan():
            return Pairing(
                stage="connecting",
                incoming=event.incoming,
                name=event.name,
                address=event.address,
                device=event.device,
            )
        case ev.PairingEnded() if pairing is None:
            return None
    if pairing is None:
        raise IllegalTransition(f"{event} without a pairing")
    match event:
        case ev.PairingCodeShown():
            return replace(
                pairing,
                stage="comparing",
                device=event.device,
                name=event.name,
                code=event.code,
                warning=event.warning,
            )
        case ev.PairingAnswered():
            return replace(pairing, stage="waiting")
        case ev.PairingEnded():
            stage: Literal["failed", "done"] = "failed" if event.problem else "done"
            return replace(pairing, stage=stage, device=event.device or pairing.device, problem=event.problem)
        case _:
            raise IllegalTransition(f"{event} is not about a pairing")


def _idle_after(run: Run | None, event: ev.Event, devices: dict[DeviceId, Device]) -> dict[DeviceId, Device]:
    """A run that is over keeps nobody busy, even before its members say so: Train may be pressed at once."""
    if run is None or not run.over or not isinstance(event, ev.RunPhaseChanged):
        return devices
    return {key: replace(each, busy=each.busy and key not in run.members) for key, each in devices.items()}


def _apply_to_run(run: Run | None, event: ev.Event) -> Run | None:
    if isinstance(event, ev.RunPlanned):
        if run is not None and run.plan.run == event.plan.run:
            known = run.expectation
            still = known if known is not None and sound(known, event.plan) else None
            return replace(run, plan=event.plan, expectation=still)
        if run is not None and not run.over:
            raise IllegalTransition(f"{event.plan.run} planned while {run.plan.run} is under way")
        members = {member.device: MemberState() for member in event.plan.members}
        return Run(plan=event.plan, phase=Planning(), members=members)
    if run is None or getattr(event, "run", None) != run.plan.run:
        raise IllegalTransition(f"{event} is of another run")
    match event:
        case ev.RunPhaseChanged():
            if type(event.phase) not in NEXT[type(run.phase)]:
                raise IllegalTransition(f"{event.phase} cannot follow {run.phase}")
            return replace(run, phase=event.phase, waiting=None if ended(event.phase) else run.waiting)
        case ev.WaitingChanged() if sound_waits(event.waits, run.plan):
            return replace(run, waiting=event if event.waits else None)
        case ev.RunSummarised() if sound_summary(event.summary, run.plan):
            return replace(run, summary=event.summary)
        case ev.MemberMeasured() if sound(event.expectation, run.plan):
            return replace(run, expectation=event.expectation)
        case ev.WaitingChanged() | ev.RunSummarised() | ev.MemberMeasured():
            raise IllegalTransition(f"{event} has numbers that cannot be")
    device: DeviceId = getattr(event, "device")  # noqa: B009  (every remaining run event has one)
    member = run.members.get(device)
    if member is None:
        raise IllegalTransition(f"{event} is of a device that is not in the run")
    return replace(run, members={**run.members, device: _apply_to_member(member, event)})


def _apply_to_member(member: MemberState, event: ev.Event) -> MemberState:
    match event:
        case ev.MemberPhaseChanged():
            return replace(member, phase=event.phase, words=event.words, done=event.done, total=event.total)
        case ev.MemberProgressed():
            newest = event.progress
            return replace(member, progress=newest, whole=newest.whole_after(member.whole))
        case ev.MemberEndedEpoch():
            return replace(member, epoch=event.epoch)
        case ev.MemberLogged():
            task = event.lines.task
            new = (line[:LOG_LINE_LENGTH] for line in event.lines.text.splitlines()[-LOG_LINES_KEPT:])
            lines = (*member.log.get(task, ()), *new)[-LOG_LINES_KEPT:]
            return replace(member, log={**member.log, task: lines})
        case ev.MemberEnded():
            return replace(member, phase="ended", exits={**member.exits, event.task: event.exit})
        case _:
            raise IllegalTransition(f"{event} is not about a member")


def _me(state: State) -> Me:
    if state.me is None:
        raise IllegalTransition("nothing can happen before the node has started")
    return state.me


def _device(state: State, device: DeviceId, name: str) -> Device:
    return state.devices.get(device) or Device(device=device, name=name)


def _with(state: State, device: Device) -> State:
    return replace(state, devices={**state.devices, device.device: device})


def _with_or_without(state: State, device: Device) -> State:
    """A device that is neither seen nor paired is of no interest any more."""
    if device.seen or device.paired or device.linked:
        return _with(state, device)
    return replace(state, devices={key: kept for key, kept in state.devices.items() if key != device.device})
