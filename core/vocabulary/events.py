"""Events, in the past tense. ``state.apply`` folds them into the state; screens follow them."""

from __future__ import annotations

from typing import Literal

from core.vocabulary.access import Grants
from core.vocabulary.bounds import Few, Name, Words
from core.vocabulary.data import Datas
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId, SweepId
from core.vocabulary.manifest import Difference, ProjectFile
from core.vocabulary.permission import Gap, Part, Walls
from core.vocabulary.phases import Exit, MemberPhase, Phase
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import EpochEnd, Expectation, LogLines, Progress, Summary
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.settings import Settings
from core.vocabulary.sweep import Sweep, Trial
from core.vocabulary.versions import Versions
from core.vocabulary.waits import WaitsFor
from core.vocabulary.wire import Tagged


class DeviceEvent(Tagged, frozen=True, kw_only=True):
    """Something about another device, or this one."""

    device: DeviceId


class RunEvent(Tagged, frozen=True, kw_only=True):
    """Something about a run."""

    run: RunId


class MemberEvent(RunEvent, frozen=True, kw_only=True):
    """Something that happened at a member of a run."""

    device: DeviceId


# --- this node ---------------------------------------------------------------------------------------------


class NodeStarted(Tagged, frozen=True, kw_only=True):
    """The node listens. ``addresses`` are this laptop's own, as ``host:port``."""

    device: DeviceId
    name: str
    addresses: tuple[str, ...]
    versions: Versions
    hardware: Hardware
    settings: Settings
    home: str


class AddressesChanged(Tagged, frozen=True, kw_only=True):
    """This laptop joined or left a network."""

    addresses: tuple[str, ...]


class SettingsChanged(Tagged, frozen=True, kw_only=True):
    settings: Settings


class NoticeRaised(Tagged, frozen=True, kw_only=True):
    """Something the user should know that belongs to no run and no pairing."""

    problem: Problem


class NodeStopped(Tagged, frozen=True, kw_only=True):
    """The last event of a node."""


# --- devices -----------------------------------------------------------------------------------------------


class DeviceFound(DeviceEvent, frozen=True, kw_only=True):
    """mDNS or a hint shows a device. None of this is authenticated: the certificate decides later."""

    name: str
    addresses: tuple[str, ...]


class DeviceGone(DeviceEvent, frozen=True, kw_only=True):
    """A device said goodbye to the network, or its record expired."""


class DevicePaired(DeviceEvent, frozen=True, kw_only=True):
    """A device is in the trust store (now, or when the node started)."""

    name: str
    nickname: str = ""
    policy: Literal["ask", "always"] = "ask"
    addresses: tuple[str, ...] = ()


class DeviceForgotten(DeviceEvent, frozen=True, kw_only=True):
    """The user ended the pairing."""


class DeviceRenamed(DeviceEvent, frozen=True, kw_only=True):
    nickname: str


class CodePolicyChanged(DeviceEvent, frozen=True, kw_only=True):
    policy: Literal["ask", "always"]


class LinkUp(DeviceEvent, frozen=True, kw_only=True):
    """A paired device, or a member of this run, is connected. ``problem``: why it can take part in no run."""

    name: str
    address: str
    versions: Versions
    hardware: Hardware
    busy: bool = False
    problem: Problem | None = None


class LinkDown(DeviceEvent, frozen=True, kw_only=True):
    """The link closed or fell silent. ``problem`` says which, and whether it will be tried again."""

    problem: Problem


class BusyChanged(DeviceEvent, frozen=True, kw_only=True):
    """A device started or ended a run, or was renamed."""

    busy: bool
    name: str = ""
    """Its new name; empty: unchanged."""


class SealChanged(DeviceEvent, frozen=True, kw_only=True):
    """A laptop, this one included, now seals its trainers in another way, as in ``Versions``."""

    seal: str


class TelemetryReported(DeviceEvent, frozen=True, kw_only=True):
    """One second of a laptop's telemetry, this one included."""

    reading: Reading


# --- pairing -----------------------------------------------------------------------------------------------


class PairingBegan(Tagged, frozen=True, kw_only=True):
    """``incoming``: the other side asked. ``device`` is None until its certificate has arrived."""

    incoming: bool
    name: str
    address: str
    device: DeviceId | None = None


class PairingCodeShown(Tagged, frozen=True, kw_only=True):
    """Six digits to compare on both screens. ``warning``: a known name has a new key."""

    device: DeviceId
    name: str
    code: str
    warning: Problem | None = None


class PairingAnswered(Tagged, frozen=True, kw_only=True):
    """This laptop's user pressed *Same*; the other user has not answered yet."""


class PairingEnded(Tagged, frozen=True, kw_only=True):
    """``problem`` None: paired (after a ``DevicePaired``); otherwise, why the pairing failed."""

    device: DeviceId | None = None
    problem: Problem | None = None


# --- before and after a run --------------------------------------------------------------------------------


class ConsentAsked(RunEvent, frozen=True, kw_only=True):
    """A peer wants to run a project here."""

    device: DeviceId
    name: str
    project: ProjectId
    script: str
    arguments: tuple[str, ...]
    files: tuple[ProjectFile, ...]
    changed: bool
    """This script was allowed before, with other files or arguments, or with less access."""
    network: Literal["", "downloads", "none"] = ""
    """Besides the run's members: downloads or none. ``""``: everything that this laptop can reach."""
    walls: Walls = "none"
    """The walls that confine it on this laptop."""
    opened: Grants = ()
    """Files and folders that it asks to open beside its own."""
    gaps: Few[Gap] = ()
    """Gaps that the walls leave on an older system."""
    checkpoint_bytes: int = 0
    """Size of the checkpoint that the run resumes from, which is sent too unless it is here; 0: none."""
    data: Datas = ()
    """Files outside the project that the script reads, sent too unless they are here."""
    rate_bytes_s: float = 0.0
    """How fast files came from that laptop last time; 0: unknown."""
    differs: dict[str, Difference] = {}
    """Set with ``changed``. Differences from the last allowed version, by path."""
    beyond: tuple[Part, ...] = ()
    """Set with ``changed``. Other ways in which it exceeds the last permission."""
    argument_sets: tuple[tuple[str, ...], ...] = ()
    """For a trial of a sweep: a yes allows all these arguments, one set after another."""


class ConsentSettled(RunEvent, frozen=True, kw_only=True):
    """The question is closed: answered, or withdrawn by the other side."""

    allowed: bool


class FilesRead(Tagged, frozen=True, kw_only=True):
    """Reading the files that travel with a script: ``done`` of ``total`` bytes. 0 of 0: finished."""

    script: str
    done: int
    total: int


class JoinProgressed(Tagged, frozen=True, kw_only=True):
    """A laptop that will join a run, this one or another, receives its files. 0 of 0: finished. ``words``:
    what that laptop is doing with its own files meanwhile."""

    device: DeviceId
    done: int
    total: int
    rate_bytes_s: float = 0.0
    words: Words = ""


class HistoryChanged(RunEvent, frozen=True, kw_only=True):
    """A past run was named, annotated or deleted, in any window or terminal."""


class CheckpointFound(RunEvent, frozen=True, kw_only=True):
    """Answers ``FindCheckpoints``: another laptop has a newer checkpoint than any known before."""

    device: DeviceId
    moment: Moment


class CheckpointCame(RunEvent, frozen=True, kw_only=True):
    """Another laptop has sent ``done`` of ``total`` bytes of a checkpoint from which a run is to resume."""

    device: DeviceId
    done: int
    total: int


class FetchEnded(RunEvent, frozen=True, kw_only=True):
    """The transfer of that checkpoint ended: it is here, or was given up."""


class SweepChanged(Tagged, frozen=True, kw_only=True):
    """A sweep began, goes on, has more trials, stops or is over."""

    sweep: Sweep


class TrialChanged(Tagged, frozen=True, kw_only=True):
    """A trial of the present sweep began, ended an epoch, is over or waits again."""

    sweep: SweepId
    trial: Trial


# --- runs --------------------------------------------------------------------------------------------------


class RunPlanned(Tagged, frozen=True, kw_only=True):
    """A run was planned. Sent again when ports or a new generation complete the plan."""

    plan: Plan

    @property
    def run(self) -> RunId:
        return self.plan.run


class RunPhaseChanged(RunEvent, frozen=True, kw_only=True):
    phase: Phase


class MemberPhaseChanged(MemberEvent, frozen=True, kw_only=True):
    """``done`` of ``total`` bytes while receiving, at ``rate_bytes_s`` (0: not known). ``words``: details.
    ``strategy``: the class's name, once a trainer has opened it."""

    phase: MemberPhase
    words: Words = ""
    done: int = 0
    total: int = 0
    rate_bytes_s: float = 0.0
    strategy: Name = ""


class MemberMeasured(MemberEvent, frozen=True, kw_only=True):
    """The members measured a step and the network before a fit's first step. The chief reports for all."""

    expectation: Expectation


class MemberProgressed(MemberEvent, frozen=True, kw_only=True):
    progress: Progress


class MemberEndedEpoch(MemberEvent, frozen=True, kw_only=True):
    epoch: EpochEnd


class MemberLogged(MemberEvent, frozen=True, kw_only=True):
    lines: LogLines


class MemberEnded(MemberEvent, frozen=True, kw_only=True):
    """A trainer of this member ended."""

    task: Name
    exit: Exit


class MemberLeft(MemberEvent, frozen=True, kw_only=True):
    """The others go on without this member; it can return only in a resumed run. ``problem``: why."""

    problem: Problem


class WaitingChanged(RunEvent, frozen=True, kw_only=True):
    """The members that the run waits for changed, or are reported again after some seconds. ``asks``: after a
    long time without progress, the user has to decide: ``GoOnWaiting`` or ``StopRun``."""

    waits: Few[WaitsFor] = ()
    asks: bool = False


class RunSummarised(RunEvent, frozen=True, kw_only=True):
    """Sent just before the last phase change."""

    summary: Summary


MirroredEvent = (
    RunPlanned
    | RunPhaseChanged
    | MemberPhaseChanged
    | MemberMeasured
    | MemberProgressed
    | MemberEndedEpoch
    | MemberLogged
    | MemberEnded
    | MemberLeft
    | WaitingChanged
    | RunSummarised
)
"""Events that the starter's node mirrors to every member, so that every screen shows the same run."""
Shown = MirroredEvent | ConsentAsked | ConsentSettled
"""Events from a run's machines to this node's screen and record."""

Event = (
    NodeStarted
    | AddressesChanged
    | SettingsChanged
    | NoticeRaised
    | NodeStopped
    | DeviceFound
    | DeviceGone
    | DevicePaired
    | DeviceForgotten
    | DeviceRenamed
    | CodePolicyChanged
    | LinkUp
    | LinkDown
    | BusyChanged
    | SealChanged
    | TelemetryReported
    | PairingBegan
    | PairingCodeShown
    | PairingAnswered
    | PairingEnded
    | FilesRead
    | JoinProgressed
    | HistoryChanged
    | CheckpointFound
    | CheckpointCame
    | FetchEnded
    | SweepChanged
    | TrialChanged
    | Shown
)
