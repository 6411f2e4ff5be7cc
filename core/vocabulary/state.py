"""The whole state of a node as one immutable snapshot, and the pure function that folds events into it."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec.structs import asdict, replace

from core.vocabulary import events as ev
from core.vocabulary.errors import IllegalTransition, Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import NEXT, Exit, MemberPhase, Phase, Planning, ended, is_followed
from core.vocabulary.plan import Plan, Task
from core.vocabulary.plausible import sound, sound_summary, sound_waits
from core.vocabulary.progress import EpochEnd, Expectation, Progress, Summary
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.settings import Settings, own_name
from core.vocabulary.sweep import Sweep
from core.vocabulary.text import newest_lines
from core.vocabulary.versions import Versions

NO_NETWORK = "no-network"
"""Code of a notice that ends as soon as there is an address."""
_LOOPBACK = ("127.", "[::1]")


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

    ``name`` and ``addresses`` are its own claims; only ``linked`` is authenticated.
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


class MemberState(msgspec.Struct, frozen=True, kw_only=True):
    """One device's part in the run."""

    phase: MemberPhase = "waiting"
    words: str = ""
    done: int = 0
    total: int = 0
    rate_bytes_s: float = 0.0
    progress: Progress | None = None
    whole: Progress | None = None
    """The newest step with a whole batch."""
    epoch: EpochEnd | None = None
    exits: dict[str, Exit] = {}
    """Exits by task name."""
    log: dict[str, tuple[str, ...]] = {}
    """The newest lines by task name."""
    left: Problem | None = None
    """Why the others went on without it; None: it is still in the run."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """The present run, or the last one until the next begins."""

    plan: Plan
    phase: Phase
    members: dict[DeviceId, MemberState]
    expectation: Expectation | None = None
    """The members' measurements before the newest fit's first step."""
    summary: Summary | None = None
    waiting: ev.WaitingChanged | None = None
    """The members that it waits for now; None: nobody."""

    @property
    def over(self) -> bool:
        return ended(self.phase)

    @property
    def staying(self) -> dict[DeviceId, MemberState]:
        """All members except those that the others went on without."""
        return {device: member for device, member in self.members.items() if member.left is None}

    @property
    def chief(self) -> Task:
        """The chief among the present members."""
        return self.plan.chief_without(self.members.keys() - self.staying.keys())


class State(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a screen needs, except for plots (``GetRun`` and the events have their points)."""

    me: Me | None = None
    devices: dict[DeviceId, Device] = {}
    pairing: Pairing | None = None
    consents: tuple[ev.ConsentAsked, ...] = ()
    """The requests that this user has to decide."""
    run: Run | None = None
    checkpoints: dict[RunId, ev.CheckpointFound] = {}
    """On linked laptops; newer than ours when they were found."""
    fetch: ev.CheckpointCame | None = None
    reading: ev.FilesRead | None = None
    """None: nothing is being read, or it began just now."""
    joining: ev.JoinProgressed | None = None
    sweep: Sweep | None = None
    """The newest sweep started here."""
    notices: tuple[Problem, ...] = ()
    stopped: bool = False

    @property
    def busy(self) -> bool:
        return self.run is not None and not self.run.over


def apply(state: State, event: ev.Event) -> State:
    """``state`` after ``event``. Raises IllegalTransition for an event that cannot follow."""
    if isinstance(event, ev.MirroredEvent):
        run = _apply_to_run(state.run, event)
        return replace(state, run=run, devices=_idle_after(run, event, state.devices))
    match event:
        case ev.PairingBegan() | ev.PairingCodeShown() | ev.PairingAnswered() | ev.PairingEnded():
            return replace(state, pairing=_apply_to_pairing(state.pairing, event))
        case ev.DeviceEvent():
            return _apply_to_devices(state, event)
        case ev.HistoryChanged():
            return state  # the history is queried, not part of the state
        case ev.CheckpointFound():
            return replace(state, checkpoints={**state.checkpoints, event.run: event})
        case ev.CheckpointCame() | ev.FetchEnded():
            return replace(state, fetch=event if isinstance(event, ev.CheckpointCame) else None)
        case ev.FilesRead():
            return replace(state, reading=event if event.total else None)
        case ev.JoinProgressed():
            return replace(state, joining=event if event.total else None)
        case ev.SweepChanged():
            return replace(state, sweep=event.sweep)
        case ev.TrialChanged() if state.sweep is not None and state.sweep.sweep == event.sweep:
            return replace(state, sweep=state.sweep.having(event.trial))
        case _:
            return _apply_to_node(state, event)


def _apply_to_node(state: State, event: ev.Event) -> State:
    match event:
        case ev.NodeStarted():
            return State(me=Me(**asdict(event)))
        case ev.AddressesChanged():
            here = any(not address.startswith(_LOOPBACK) for address in event.addresses)
            notices = tuple(each for each in state.notices if not (here and each.code == NO_NETWORK))
            return replace(state, me=replace(_me(state), addresses=event.addresses), notices=notices)
        case ev.SettingsChanged():
            me = _me(state)
            name = me.name if event.settings.name == me.settings.name else own_name(event.settings)
            return replace(state, me=replace(me, settings=event.settings, name=name))
        case ev.NoticeRaised():
            others = tuple(notice for notice in state.notices if notice.code != event.problem.code)
            return replace(state, notices=(*others, event.problem)[-20:])
        case ev.ConsentAsked():
            return replace(state, consents=(*state.consents, event))
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
            # A record proves nothing: it must not rename a device that told us its name over a link.
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
    known = state.devices.get(event.device) if isinstance(event, ev.DeviceEvent) else None
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
            return _with_or_without(replace(state, checkpoints=there), lost)
        case ev.BusyChanged():
            return _with(state, replace(known, busy=event.busy, name=event.name or known.name))
        case ev.SealChanged(seal=seal) if known.versions is not None:
            return _with(state, replace(known, versions=replace(known.versions, seal=seal)))
        case ev.TelemetryReported():
            return _with(state, replace(known, reading=event.reading))
        case _:
            raise IllegalTransition(f"{event} is not about a device")


def _apply_to_pairing(pairing: Pairing | None, event: ev.Event) -> Pairing | None:
    match event:
        case ev.PairingBegan():
            return Pairing(stage="connecting", **asdict(event))
        case ev.PairingEnded() if pairing is None:
            return None
    if pairing is None:
        raise IllegalTransition(f"{event} without a pairing")
    match event:
        case ev.PairingCodeShown():
            return replace(pairing, stage="comparing", **asdict(event))
        case ev.PairingAnswered():
            return replace(pairing, stage="waiting")
        case ev.PairingEnded():
            stage: Literal["failed", "done"] = "failed" if event.problem else "done"
            return replace(pairing, stage=stage, device=event.device or pairing.device, problem=event.problem)
        case _:
            raise IllegalTransition(f"{event} is not about a pairing")


def _idle_after(run: Run | None, event: ev.Event, devices: dict[DeviceId, Device]) -> dict[DeviceId, Device]:
    """After a run its members are idle, even before they report that, unless another run follows at once."""
    if run is None or not run.over or not isinstance(event, ev.RunPhaseChanged) or is_followed(run.phase):
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
    if run is None or not isinstance(event, ev.RunEvent) or event.run != run.plan.run:
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
            raise IllegalTransition(f"{event} has impossible numbers")
    if not isinstance(event, ev.MemberEvent) or event.device not in run.members:
        raise IllegalTransition(f"{event} is of a device that is not in the run")
    if isinstance(event, ev.MemberLogged | ev.MemberEnded):
        task = event.lines.task if isinstance(event, ev.MemberLogged) else event.task
        if all(task != each.name for each in run.plan.tasks_of(event.device)):
            # Each task's output is kept in memory and in a separate file: no made-up tasks.
            raise IllegalTransition(f"{type(event).__name__} is of a task that the device does not have")
    member = _apply_to_member(run.members[event.device], event)
    return replace(run, members={**run.members, event.device: member})


def _apply_to_member(member: MemberState, event: ev.MemberEvent) -> MemberState:
    match event:
        case ev.MemberPhaseChanged():
            return replace(
                member,
                phase=event.phase,
                words=event.words,
                done=event.done,
                total=event.total,
                rate_bytes_s=event.rate_bytes_s,
            )
        case ev.MemberProgressed():
            newest = event.progress
            return replace(member, progress=newest, whole=newest.whole_after(member.whole))
        case ev.MemberEndedEpoch():
            return replace(member, epoch=event.epoch)
        case ev.MemberLogged():
            task = event.lines.task
            lines = newest_lines(member.log.get(task, ()), event.lines.text)
            return replace(member, log={**member.log, task: lines})
        case ev.MemberEnded():
            return replace(member, phase="ended", exits={**member.exits, event.task: event.exit})
        case ev.MemberLeft():
            return replace(member, phase="ended", left=event.problem)
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
    """Keep the device in the state only while it is seen, paired or linked."""
    if device.seen or device.paired or device.linked:
        return _with(state, device)
    return replace(state, devices={key: kept for key, kept in state.devices.items() if key != device.device})
