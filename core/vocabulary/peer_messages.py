"""Messages between paired nodes: MessagePack, bounded; an unknown message ends the link."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.bounds import Few, FewBy, FilePath, Key, ManyBy, Name, Piece, Some, Word, Words
from core.vocabulary.errors import Problem
from core.vocabulary.events import MemberEndedEpoch, MemberProgressed, MirroredEvent
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.laptops import LaptopUsed, MembershipChanged
from core.vocabulary.limits import LOAD_S, MEET_S
from core.vocabulary.manifest import Listing, Manifest
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.versions import Versions
from core.vocabulary.waits import TrainerStatus
from core.vocabulary.wire import Tagged

MAX_FRAME_BYTES = 1 << 20
MODULES_ASKED = 500


class RunMessage(Tagged, frozen=True, kw_only=True):
    """A message about a run."""

    run: RunId


class Hello(Tagged, frozen=True, kw_only=True):
    """The first frame both ways. ``port``: where this node listens."""

    name: Name
    versions: Versions
    hardware: Hardware
    port: int
    busy: bool
    session: Key = b""
    """Drawn at random by the sender, anew with each session of the link."""
    number: int = 0
    """Counts the sender's hellos. The device with the lower id numbers the connection, and the highest
    number carries the link. The other device's number only shows that a hello is stale."""


class Bye(Tagged, frozen=True, kw_only=True):
    """In place of a hello: there will be no link."""

    problem: Problem


class TelemetrySent(Tagged, frozen=True, kw_only=True):
    reading: Reading


class BusyTold(Tagged, frozen=True, kw_only=True):
    """Changes to the hello: this laptop started or ended a run, its trainers are now sealed in another way,
    or it was renamed."""

    busy: bool
    seal: Word | None = None
    """As in ``Versions``; None: unchanged."""
    name: Name = ""
    """Empty: unchanged."""


# --- the doctor: whether trainers could reach each other ---------------------------------------------------

Dialled = Literal["answers", "refused", "silent", "unreachable", "stranger"]
"""Result of a connection to a trainer's port. ``stranger``: something else answered."""


class ReachAsked(Tagged, frozen=True, kw_only=True):
    """Connect to this laptop at ``port`` as a trainer would, read ``nonce`` there, then listen in turn."""

    nonce: Key
    port: int


class ReachTold(Tagged, frozen=True, kw_only=True):
    """The result. ``port``: where to read the same ``nonce``, for a few seconds; 0: none was free."""

    nonce: Key
    dialled: Dialled
    port: int


# --- before a run: whether a script finds what it imports ---------------------------------------------------


class ModulesAsked(Tagged, frozen=True, kw_only=True):
    """Which of these modules would a script of yours not find? At most ``MODULES_ASKED`` top-level names.

    It also tells the receiver that a run with it is being prepared. Without names it has no answer.
    """

    question: int
    modules: Some[Name]


class ModulesTold(Tagged, frozen=True, kw_only=True):
    """``installer``: the install command there, without the packages; ``""``: nothing can be installed."""

    question: int
    missing: Some[Name]
    installer: Words = ""


class InstallAsked(Tagged, frozen=True, kw_only=True):
    """Please install these packages, each by name or ``name==version``: the receiver's user decides."""

    packages: Few[Name]


class InstallTold(Tagged, frozen=True, kw_only=True):
    """The packages are installed; or ``problem`` says why they are not."""

    packages: Few[Name]
    problem: Problem | None = None


class LoadAsked(Tagged, frozen=True, kw_only=True):
    """Have a trainer load TensorFlow, and answer when it has: our run will stop to let a laptop join."""

    question: int


class LoadTold(Tagged, frozen=True, kw_only=True):
    """``loaded``: whether a trainer is ready. If not, memory is short, the user does not want it, or loading
    took too long."""

    question: int
    loaded: bool


# --- a run: starter to member ------------------------------------------------------------------------------


class Prepare(Tagged, frozen=True, kw_only=True):
    """Take part in this run? The answer is one of the member's messages below."""

    plan: Plan
    manifest: Manifest
    listing: Listing | None = None
    """Set if the manifest is too long for this message, which then names only the script."""
    source: FilePath = ""
    checkpoint: Manifest | None = None
    """The files of the checkpoint that ``plan.resume`` names."""
    written: Manifest | None = None
    """The files that the script of the resumed run had written, none of them the project's."""
    written_at: FilePath = ""
    """Their folder; like ``source`` only for the starter's own part."""
    texts: ManyBy[FilePath, Piece] = {}
    """The project's texts that the user can read before they answer, by path. The manifest proves each."""


class FilesFrom(RunMessage, frozen=True, kw_only=True):
    """The answer to ``FilesWanted``, where something is missing: fetch the files from ``giver``, and those
    that it does not have from the starter."""

    giver: DeviceId


class GiveFiles(RunMessage, frozen=True, kw_only=True):
    """Let another member fetch those files of this run that come to you, as they come."""

    to: DeviceId


class Launch(Tagged, frozen=True, kw_only=True):
    """Everybody is prepared: start the trainers of this complete plan. Each waits ``meet_s`` for the
    others."""

    plan: Plan
    meet_s: float = MEET_S


class StopAsked(RunMessage, frozen=True, kw_only=True):
    """``force`` 0: at the end of a step; 1: terminate; 2: kill. Members also send it to the starter."""

    force: int = 0


class GoOnWithout(RunMessage, frozen=True, kw_only=True):
    """Some members are gone for good: the trainers of the others meet without them, from the same step."""

    generation: int
    """Larger than any before."""
    gone: Few[DeviceId]
    """These and all named before."""


class RunAbandoned(RunMessage, frozen=True, kw_only=True):
    """The run is over for this member, whatever it is doing: end all of its trainers now."""

    problem: Problem


class OutputsReceived(RunMessage, frozen=True, kw_only=True):
    """The starter has every output file: the chief may clean up."""


# --- reports ------------------------------------------------------------------------------------------------


class ReportSent(Tagged, frozen=True, kw_only=True):
    """A run's report, from the sender's user to the receiver's. ``page``: its HTML, compressed (zlib)."""

    script: Name
    page: Piece


# --- a lost starter: member and starter ---------------------------------------------------------------------


class TookOver(RunMessage, frozen=True, kw_only=True):
    """To a run's starter, after a lost connection: the sender went on with the run, and has done ``step``
    steps."""

    step: int


class TakenBack(RunMessage, frozen=True, kw_only=True):
    """The answer: the starter continues the run itself. Stop at the end of a step, and keep a checkpoint for
    the starter. ``goes_on``: False if the starter's user has stopped the run, or it has ended."""

    goes_on: bool = True


# --- checkpoints: starter and those who may have one -------------------------------------------------------


class CheckpointAsked(RunMessage, frozen=True, kw_only=True):
    """Which checkpoint of this run do you have? Answered by ``CheckpointTold``, after a quick check."""

    recorded: Moment | None = None
    """Also send what was recorded after this position; None: nothing."""


class KeptCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint on a member's disk."""

    moment: Moment
    shares: Few[int] = ()
    files: Manifest
    written: Manifest | None = None
    """Files that the script had written there."""
    took_s: float = 0.0
    """As in ``Resumption``."""
    recorded: Some[MemberProgressed | MemberEndedEpoch] = ()
    """Steps and epochs after ``CheckpointAsked.recorded``, some left out if there are many."""
    membership: Few[MembershipChanged] = ()
    """The newest departures and arrivals; empty unless ``CheckpointAsked.recorded`` was set. ``at_s``: as in
    the reports of steps."""
    used: Some[LaptopUsed] = ()
    """How busy the laptops were in that time; thinned. ``second`` is Unix time, as in the reports of
    steps."""


class CheckpointTold(RunMessage, frozen=True, kw_only=True):
    """The newest checkpoint; None: there is none, or none for you. Also answers ``CheckpointWanted`` with the
    newest intact one if the requested one is damaged."""

    kept: KeptCheckpoint | None = None


class CheckpointWanted(RunMessage, frozen=True, kw_only=True):
    """Offer its files, and those of ``CheckpointTold.written`` (``core.transfer``). None: withdraw the
    request."""

    checkpoint: ProjectId | None


# --- a run: member to starter ------------------------------------------------------------------------------


class FilesWanted(RunMessage, frozen=True, kw_only=True):
    """Consent is given. ``total_bytes``: size of the project, checkpoint and written files that are missing
    here; 0: nothing is."""

    total_bytes: int


class Prepared(RunMessage, frozen=True, kw_only=True):
    """Files verified, ports chosen: one for each of this device's tasks, by task name.

    ``certificates``: where members meet over TLS, each task's certificate for this run only (DER).
    """

    ports: FewBy[Name, int]
    certificates: FewBy[Name, Key] = {}
    load_s: float = LOAD_S
    """The longest time that TensorFlow may take to load here."""


class Declined(RunMessage, frozen=True, kw_only=True):
    """The member does not take part: its user refused, it is busy, its disk is full, its version differs…"""

    problem: Problem


class EventTold(Tagged, frozen=True, kw_only=True):
    """An event of the run. A member reports its own events, and the starter checks that they name its device.
    The starter passes on all members' events, for each member's screen."""

    event: MirroredEvent


class StatusTold(RunMessage, frozen=True, kw_only=True):
    """The activity of this member's trainer that waits or keeps others waiting; None: it continues."""

    task: Name
    status: TrainerStatus | None = None


class OutputsOffered(RunMessage, frozen=True, kw_only=True):
    """The outputs of the chief's script, which can be fetched now. ``problem``: why some are missing."""

    manifest: Manifest
    problem: Problem | None = None


Message = (
    Hello
    | Bye
    | TelemetrySent
    | BusyTold
    | ReachAsked
    | ReachTold
    | ModulesAsked
    | ModulesTold
    | InstallAsked
    | InstallTold
    | LoadAsked
    | LoadTold
    | Prepare
    | FilesFrom
    | GiveFiles
    | Launch
    | StopAsked
    | GoOnWithout
    | RunAbandoned
    | OutputsReceived
    | ReportSent
    | TookOver
    | TakenBack
    | CheckpointAsked
    | CheckpointTold
    | CheckpointWanted
    | FilesWanted
    | Prepared
    | Declined
    | EventTold
    | StatusTold
    | OutputsOffered
)


def question_of(message: Message) -> tuple[type[Message], object] | None:
    """The type of the answer and its key, for a question or an answer; None: it is neither."""
    match message:
        case ReachAsked(nonce=nonce) | ReachTold(nonce=nonce):
            return ReachTold, nonce
        case ModulesAsked(question=number) | ModulesTold(question=number):
            return ModulesTold, number
        case LoadAsked(question=number) | LoadTold(question=number):
            return LoadTold, number
        case CheckpointAsked(run=run) | CheckpointTold(run=run):
            return CheckpointTold, run
    return None
