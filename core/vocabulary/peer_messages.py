"""What paired nodes say to each other: MessagePack in length-checked frames; an unknown one ends the link."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.errors import Problem
from core.vocabulary.events import RunEvent, RunPlanned
from core.vocabulary.holdings import Kept
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.limits import LOAD_S, MEET_S
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.readings import Hardware, Reading
from core.vocabulary.versions import Versions
from core.vocabulary.waits import Stand
from core.vocabulary.wire import Tagged

MAX_FRAME_BYTES = 1 << 20
MODULES_ASKED = 500


class Hello(Tagged, frozen=True, kw_only=True):
    """The first frame both ways. ``port``: where this node listens."""

    name: str
    versions: Versions
    hardware: Hardware
    port: int
    busy: bool
    nonce: bytes = b""


class Ping(Tagged, frozen=True, kw_only=True):
    """Every 2 s. Any frame counts as a sign of life; silent after 10 s."""


class Bye(Tagged, frozen=True, kw_only=True):
    """The link ends on purpose."""

    problem: Problem


class TelemetrySent(Tagged, frozen=True, kw_only=True):
    reading: Reading
    busy: bool


class BusyTold(Tagged, frozen=True, kw_only=True):
    """What has changed of a hello: this laptop began or ended a run just now, or its trainers are sealed in
    another way now."""

    busy: bool
    seal: str | None = None
    """As in ``Versions``; None: as it was."""


# --- the doctor: whether trainers could call each other ----------------------------------------------------

Dialled = Literal["answers", "refused", "silent", "unreachable", "stranger"]
"""How a call to a trainer's port went. ``stranger``: something else answered there."""


class ReachAsked(Tagged, frozen=True, kw_only=True):
    """Call this laptop at ``port``, as a trainer would, read ``nonce`` there, and then listen in your turn.

    Only for who speaks the exchange (``Versions.exchange``): an older Tandem would end the link.
    """

    nonce: bytes
    port: int


class ReachTold(Tagged, frozen=True, kw_only=True):
    """How that went. ``port``: where to read the same ``nonce``, for a few seconds; 0: none was free."""

    nonce: bytes
    dialled: Dialled
    port: int


# --- before a run: whether a script finds what it imports ---------------------------------------------------


class ModulesAsked(Tagged, frozen=True, kw_only=True):
    """Which of these modules would a script of yours not find? At most ``MODULES_ASKED`` first names.

    Only for who says so (``Versions.tells_modules``): an older Tandem would end the link.
    """

    question: int
    modules: tuple[str, ...]


class ModulesTold(Tagged, frozen=True, kw_only=True):
    """``installer``: the command that installs there, but for what; ``""``: nothing can be installed."""

    question: int
    missing: tuple[str, ...]
    installer: str = ""


# --- what is kept of each other ----------------------------------------------------------------------------


class KeptAsked(Tagged, frozen=True, kw_only=True):
    """What do you keep of my projects? The answer is ``KeptTold`` with the same ``number``.

    Only for who speaks of it (``Versions.keeping``): an older Tandem would end the link.
    """

    number: int


class RemovalAsked(Tagged, frozen=True, kw_only=True):
    """Remove this project of mine with what its runs left, or all. ``KeptTold`` answers: what is left."""

    number: int
    project: ProjectId | None = None


class KeptTold(Tagged, frozen=True, kw_only=True):
    """``problem``: why something was not removed."""

    number: int
    kept: Kept
    problem: Problem | None = None


# --- a run: starter to member ------------------------------------------------------------------------------


class Prepare(Tagged, frozen=True, kw_only=True):
    """Take part in this run? The answer is one of the member's messages below."""

    plan: Plan
    manifest: Manifest
    source: str = ""
    checkpoint: Manifest | None = None
    """The files of the checkpoint that ``plan.resume`` names."""
    texts: dict[str, bytes] = {}
    """By path: what of the project can be looked at before the yes. The manifest proves each."""


class Chunk(Tagged, frozen=True, kw_only=True):
    """A piece of file number ``file`` of the manifest, at most ``core.project.receipt.PIECE_BYTES``."""

    run: RunId
    project: ProjectId
    file: int
    offset: int
    data: bytes


class Launch(Tagged, frozen=True, kw_only=True):
    """Everybody is prepared: start the trainers of this complete plan, each of which waits ``meet_s`` for the
    others."""

    plan: Plan
    meet_s: float = MEET_S


class StopAsked(Tagged, frozen=True, kw_only=True):
    """``force`` 0: at the end of a step; 1: terminate; 2: kill. Also sent by a member to the starter."""

    run: RunId
    force: int = 0


class RunAbandoned(Tagged, frozen=True, kw_only=True):
    """The run is over for this member, whatever it is doing: end every trainer of it now."""

    run: RunId
    problem: Problem


class Mirrored(Tagged, frozen=True, kw_only=True):
    """The starter's events of the run, for the member's screen. ``number``: see ``Resumed``."""

    event: RunEvent
    number: int = 0


class OutputsReceived(Tagged, frozen=True, kw_only=True):
    """The starter has every output file: the chief may clean up."""

    run: RunId


# --- a run: both ways --------------------------------------------------------------------------------------


class Resumed(Tagged, frozen=True, kw_only=True):
    """There is a link again in the middle of a run: what was numbered above ``heard`` is to be said again.

    ``Mirrored`` and ``Reported`` are numbered from 1 in a run whose members may come back.
    """

    run: RunId
    heard: int
    from_starter: bool = False


# --- checkpoints: starter and those who may have one -------------------------------------------------------


class CheckpointAsked(Tagged, frozen=True, kw_only=True):
    """Which checkpoint of this run do you have? The answer is ``CheckpointTold``, at a glance."""

    run: RunId


class CheckpointTold(Tagged, frozen=True, kw_only=True):
    """The newest one; None: none, or none for you. Also the answer to ``CheckpointWanted`` where what was
    wanted proved damaged: then it is the newest whole one."""

    run: RunId
    moment: Moment | None = None
    shares: tuple[int, ...] = ()
    files: Manifest | None = None


class CheckpointWanted(Tagged, frozen=True, kw_only=True):
    """Send it: ``Chunk``s of all its files follow, in order. None: send no more."""

    run: RunId
    checkpoint: ProjectId | None


# --- a run: member to starter ------------------------------------------------------------------------------


class FilesWanted(Tagged, frozen=True, kw_only=True):
    """Consent is given. Indices of the files that are not here yet; empty: none.

    They count through the project's manifest and on through the checkpoint's.
    """

    run: RunId
    files: tuple[int, ...]


class Prepared(Tagged, frozen=True, kw_only=True):
    """Files verified, ports chosen: one for each of this device's tasks, by task name.

    ``certificates``: where members meet over TLS, each task's for this run alone (DER).
    """

    run: RunId
    ports: dict[str, int]
    certificates: dict[str, bytes] = {}
    load_s: float = LOAD_S
    """The longest that TensorFlow may take to load here."""


class Declined(Tagged, frozen=True, kw_only=True):
    """No: the user said so, busy, disk full, another version…"""

    run: RunId
    problem: Problem


class Reported(Tagged, frozen=True, kw_only=True):
    """What happened at this member: the starter checks its device and mirrors it to all.

    ``number``: see ``Resumed``.
    """

    event: RunEvent
    number: int = 0


class StandTold(Tagged, frozen=True, kw_only=True):
    """What one of this member's trainers does that waits, or keeps others waiting; None: it goes on."""

    run: RunId
    task: str
    stand: Stand | None = None


class OutputsOffered(Tagged, frozen=True, kw_only=True):
    """What the chief's script wrote; its ``Chunk``s follow. ``problem``: why some are missing."""

    run: RunId
    manifest: Manifest
    problem: Problem | None = None


Message = (
    Hello
    | Ping
    | Bye
    | TelemetrySent
    | BusyTold
    | ReachAsked
    | ReachTold
    | ModulesAsked
    | ModulesTold
    | KeptAsked
    | RemovalAsked
    | KeptTold
    | Prepare
    | Chunk
    | Launch
    | StopAsked
    | RunAbandoned
    | Mirrored
    | OutputsReceived
    | CheckpointAsked
    | CheckpointTold
    | CheckpointWanted
    | FilesWanted
    | Prepared
    | Declined
    | Reported
    | StandTold
    | Resumed
    | OutputsOffered
)


class From(msgspec.Struct, frozen=True):
    """A message with the proven device it came from."""

    device: DeviceId
    message: Message


def run_of(message: Message) -> RunId | None:
    """The run that a message is about; None where it is about none."""
    match message:
        case Prepare(plan=plan) | Launch(plan=plan):
            return plan.run
        case Reported(event=event) | Mirrored(event=event):
            return event.plan.run if isinstance(event, RunPlanned) else event.run
        case _:
            return getattr(message, "run", None)
