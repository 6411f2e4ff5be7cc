"""What happened, in the past tense. ``state.apply`` folds these into the state; screens follow them."""

from __future__ import annotations

from typing import Literal

from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import Difference, ProjectFile
from core.vocabulary.phases import Exit, MemberPhase, Phase
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import EpochEnd, Expectation, LogLines, Progress, Summary
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.settings import Settings
from core.vocabulary.versions import Versions
from core.vocabulary.waits import WaitsFor
from core.vocabulary.wire import Tagged

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


class DeviceFound(Tagged, frozen=True, kw_only=True):
    """mDNS or a hint shows a device. Nothing of this is proven: the certificate decides later."""

    device: DeviceId
    name: str
    addresses: tuple[str, ...]


class DeviceGone(Tagged, frozen=True, kw_only=True):
    """A device said goodbye to the network, or its record ran out."""

    device: DeviceId


class DevicePaired(Tagged, frozen=True, kw_only=True):
    """A device is in the trust store (now, or when the node started)."""

    device: DeviceId
    name: str
    nickname: str = ""
    policy: Literal["ask", "always"] = "ask"
    addresses: tuple[str, ...] = ()


class DeviceForgotten(Tagged, frozen=True, kw_only=True):
    device: DeviceId


class DeviceRenamed(Tagged, frozen=True, kw_only=True):
    device: DeviceId
    nickname: str


class CodePolicyChanged(Tagged, frozen=True, kw_only=True):
    device: DeviceId
    policy: Literal["ask", "always"]


class LinkUp(Tagged, frozen=True, kw_only=True):
    """A paired device is connected and proven. ``problem``: why no run is possible with it (versions)."""

    device: DeviceId
    name: str
    address: str
    versions: Versions
    hardware: Hardware
    busy: bool = False
    problem: Problem | None = None


class LinkDown(Tagged, frozen=True, kw_only=True):
    """The link closed or fell silent. ``problem`` says which, and whether it will be tried again."""

    device: DeviceId
    problem: Problem


class BusyChanged(Tagged, frozen=True, kw_only=True):
    """A device began or ended a run."""

    device: DeviceId
    busy: bool


class SealChanged(Tagged, frozen=True, kw_only=True):
    """A laptop, this one included, was looked at again: its trainers are sealed in another way now."""

    device: DeviceId
    seal: str
    """As in ``Versions``."""


class TelemetryReported(Tagged, frozen=True, kw_only=True):
    """One second of a laptop, this one included."""

    device: DeviceId
    reading: Reading


# --- pairing -----------------------------------------------------------------------------------------------


class PairingBegan(Tagged, frozen=True, kw_only=True):
    """``incoming``: the other side asked. ``device`` is None until its certificate came."""

    incoming: bool
    name: str
    address: str
    device: DeviceId | None = None


class PairingCodeShown(Tagged, frozen=True, kw_only=True):
    """Six digits to compare on both screens. ``warning``: a known name came with a new key."""

    device: DeviceId
    name: str
    code: str
    warning: Problem | None = None


class PairingAnswered(Tagged, frozen=True, kw_only=True):
    """This side said *Same*; the other has to."""


class PairingEnded(Tagged, frozen=True, kw_only=True):
    """``problem`` None: paired (a ``DevicePaired`` came before). Otherwise why not."""

    device: DeviceId | None = None
    problem: Problem | None = None


# --- consent -----------------------------------------------------------------------------------------------


class ConsentAsked(Tagged, frozen=True, kw_only=True):
    """A peer wants to run a project here."""

    run: RunId
    device: DeviceId
    name: str
    project: ProjectId
    script: str
    arguments: tuple[str, ...]
    files: tuple[ProjectFile, ...]
    changed: bool
    """An earlier version of this script was allowed; its files or its arguments are others now."""
    network: Literal["", "downloads", "none"] = ""
    """Of a script whose trainers are sealed: it reaches what it downloads, or nothing. ``""``: not sealed."""
    open_port: bool = False
    """TensorFlow's port would be open to the network on this laptop: to be accepted for this one run."""
    checkpoint_bytes: int = 0
    """Of the checkpoint that the run resumes from, which is sent too unless it is here; 0: none."""
    differs: dict[str, Difference] = {}
    """With ``changed``, by path: what is not as it was allowed last. Empty: only its arguments are not."""


class ConsentSettled(Tagged, frozen=True, kw_only=True):
    """The question is off the table: answered, or the other side gave up."""

    run: RunId
    allowed: bool


# --- the history -------------------------------------------------------------------------------------------


class HistoryChanged(Tagged, frozen=True, kw_only=True):
    """A past run was named, annotated or deleted, from whichever window or terminal."""

    run: RunId


# --- checkpoints of a run that ended before its time --------------------------------------------------------


class CheckpointFound(Tagged, frozen=True, kw_only=True):
    """Asked for by ``FindCheckpoints``: another laptop says that it has a newer one than all known before."""

    run: RunId
    device: DeviceId
    moment: Moment


class CheckpointCame(Tagged, frozen=True, kw_only=True):
    """A run is to be resumed: ``done`` of ``total`` bytes of its checkpoint have come from another laptop."""

    run: RunId
    device: DeviceId
    done: int
    total: int


class FetchEnded(Tagged, frozen=True, kw_only=True):
    """No more of that checkpoint comes: it is here, or was given up."""

    run: RunId


# --- runs --------------------------------------------------------------------------------------------------


class RunPlanned(Tagged, frozen=True, kw_only=True):
    """A run takes shape on this node. Comes again when ports or a new generation complete the plan."""

    plan: Plan


class RunPhaseChanged(Tagged, frozen=True, kw_only=True):
    run: RunId
    phase: Phase


class MemberPhaseChanged(Tagged, frozen=True, kw_only=True):
    """``done`` of ``total`` bytes while receiving; ``words`` where there is more to say.

    ``strategy``: the class's name, once a trainer has opened it.
    """

    run: RunId
    device: DeviceId
    phase: MemberPhase
    words: str = ""
    done: int = 0
    total: int = 0
    strategy: str = ""


class MemberMeasured(Tagged, frozen=True, kw_only=True):
    """Before a fit's first step the members measured it and the wire. The chief says it for all."""

    run: RunId
    device: DeviceId
    expectation: Expectation


class MemberProgressed(Tagged, frozen=True, kw_only=True):
    run: RunId
    device: DeviceId
    progress: Progress


class MemberEndedEpoch(Tagged, frozen=True, kw_only=True):
    run: RunId
    device: DeviceId
    epoch: EpochEnd


class MemberLogged(Tagged, frozen=True, kw_only=True):
    run: RunId
    device: DeviceId
    lines: LogLines


class MemberEnded(Tagged, frozen=True, kw_only=True):
    """A trainer of this member ended."""

    run: RunId
    device: DeviceId
    task: str
    exit: Exit


class WaitingChanged(Tagged, frozen=True, kw_only=True):
    """Whom the run waits for has changed, or is still the same a few seconds later. Empty: for nobody.

    ``asks``: there was no progress for so long that the user has to decide: ``GoOnWaiting`` or ``StopRun``.
    """

    run: RunId
    waits: tuple[WaitsFor, ...] = ()
    asks: bool = False


class RunSummarised(Tagged, frozen=True, kw_only=True):
    """Comes just before the last phase change."""

    run: RunId
    summary: Summary


RunEvent = (
    RunPlanned
    | RunPhaseChanged
    | MemberPhaseChanged
    | MemberMeasured
    | MemberProgressed
    | MemberEndedEpoch
    | MemberLogged
    | MemberEnded
    | WaitingChanged
    | RunSummarised
)
"""What the starter's node mirrors to every member, so that every screen shows the same run."""

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
    | ConsentAsked
    | ConsentSettled
    | HistoryChanged
    | CheckpointFound
    | CheckpointCame
    | FetchEnded
    | RunEvent
)
