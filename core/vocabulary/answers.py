"""What a command is answered with, at once. What follows from it comes as events."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.errors import Problem
from core.vocabulary.holdings import Kept
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.laptops import LaptopUsed, Machine, MembershipChanged
from core.vocabulary.manifest import ProjectFile
from core.vocabulary.phases import Phase
from core.vocabulary.plan import Moment, Plan, RunSpec
from core.vocabulary.progress import Best, EpochEnd, Progress, Summary
from core.vocabulary.state import State
from core.vocabulary.wire import Tagged


class Done(Tagged, frozen=True, kw_only=True):
    """Accepted; there is nothing more to say."""


class Refused(Tagged, frozen=True, kw_only=True):
    """Not accepted, and why."""

    problem: Problem


class StateNow(Tagged, frozen=True, kw_only=True):
    state: State


class ScriptRead(Tagged, frozen=True, kw_only=True):
    """What reading a script found. ``mistakes`` name the known ones, each with its line.

    ``kind`` is ``managed`` for ``fit`` in a mirrored strategy, too.
    """

    script: str
    folder: str
    kind: Literal["managed", "own", "neither"]
    strategies: tuple[str, ...] = ()
    """Those that the script opens itself."""
    mirrored_loop: bool = False
    """A loop by hand in MirroredStrategy, whose replicas are the laptops."""
    mistakes: tuple[Problem, ...] = ()
    files: tuple[ProjectFile, ...] = ()
    skipped: tuple[str, ...] = ()
    total_bytes: int = 0
    code: str = ""
    """As ``Plan.code``: for which differences from one machine's result are accepted."""


class ScriptsFound(Tagged, frozen=True, kw_only=True):
    """A folder with several scripts that train: a person has to choose. Names in ``folder``, in order."""

    folder: str
    scripts: tuple[str, ...]
    problem: Problem


class PlanMade(Tagged, frozen=True, kw_only=True):
    """``tf_configs``: by ``device id/task name`` the exact text of TF_CONFIG; empty for one device alone.

    Ports that are not chosen yet are shown as they will be asked for.
    """

    plan: Plan
    tf_configs: dict[str, str] = {}
    expectation: str = ""
    """How fast the newest run of this script on these devices was, in a sentence; ``""``: there was none."""
    advice: str = ""
    """What would help, where that was hardly faster than one of them alone."""
    warnings: tuple[Problem, ...] = ()
    """What may end the run in its middle: a module that some laptop lacks, in a line that may not be run."""
    last_shares: dict[DeviceId, int] = {}
    """Rows of the batch that each had at that run's end."""


Change = Literal["", "new", "changed", "same", "gone"]
"""Of a project's file against the version that this user allowed last; ``""``: there is none to compare."""


class RequestFile(msgspec.Struct, frozen=True, kw_only=True):
    """``text``: what would run, with characters that hide spelled out (``⟨U+202E⟩``); None: it did not come
    with the request, as it is no text or too large. ``diff``: a unified one. ``note``: what the reader has
    to know of it."""

    path: str
    size: int
    change: Change = ""
    text: str | None = None
    diff: str = ""
    note: str = ""


class RequestRead(Tagged, frozen=True, kw_only=True):
    """What a peer wants to run here, the script first. A text is of the file with the digest that was asked
    about."""

    run: RunId
    files: tuple[RequestFile, ...]


class RunAccepted(Tagged, frozen=True, kw_only=True):
    run: RunId


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history. ``started_s`` is Unix time; ``phase`` is the last one."""

    run: RunId
    started_s: float
    duration_s: float | None = None
    script: str
    source: str = ""
    """Where the script lay on the starter's laptop; ``""`` on the others."""
    arguments: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Names, chief first."""
    device_ids: tuple[DeviceId, ...] = ()
    """Of ``devices``; ``()`` in a record of an earlier Tandem."""
    spec: RunSpec | None = None
    """What was asked for; None on the others' laptops and in a record of an earlier Tandem."""
    resumed: RunId | None = None
    """The run that it resumed."""
    phase: Phase
    summary: Summary = Summary()
    folder: str = ""
    name: str = ""
    """What its user calls it on this laptop; ``""``: nothing of one's own."""
    note: str = ""
    """What its user wrote down about it on this laptop."""
    best: dict[str, Best] = {}
    """By metric, of those where a name tells which values are better."""
    machines: dict[DeviceId, Machine] = {}
    """What its laptops were; those of which this one knew."""


class RunList(Tagged, frozen=True, kw_only=True, tag="runs"):
    runs: tuple[RunEntry, ...]
    problem: Problem | None = None
    """Why the list may be short: the index was corrupt and has been rebuilt from the run folders."""


class RunDetails(Tagged, frozen=True, kw_only=True):
    """``steps`` and ``epochs``: by device id, in order; thinned to a few thousand points a device."""

    entry: RunEntry
    plan: Plan | None = None
    steps: dict[DeviceId, tuple[Progress, ...]] = {}
    epochs: dict[DeviceId, tuple[EpochEnd, ...]] = {}
    uses: dict[DeviceId, tuple[LaptopUsed, ...]] = {}
    """How busy its laptops were, in order; thinned as ``steps``."""
    membership: tuple[MembershipChanged, ...] = ()
    """Who came and went, in order."""
    log: str = ""
    """The end of the run's log, at most 64 KiB."""
    report: str = ""
    """Path of the run's one-page report (HTML) on the node's laptop; ``""`` where there is none."""
    checkpoint: Moment | None = None
    """The newest checkpoint on this laptop, where ``RunSpec.resume`` goes on unless others have newer ones:
    ``FindCheckpoints``."""


class KeptList(Tagged, frozen=True, kw_only=True):
    """``there``: what the device keeps of this laptop's projects; None: ``problem`` says why it could not be
    asked. ``here``: what this laptop keeps of the device's."""

    device: DeviceId
    here: Kept
    there: Kept | None = None
    problem: Problem | None = None


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the doctor. ``mend`` True: Tandem can mend it (``Mend(code=...)``)."""

    code: str
    topic: str
    level: Literal["ok", "note", "warning", "error"]
    what: str
    fix: str = ""
    mend: bool = False


class Findings(Tagged, frozen=True, kw_only=True):
    findings: tuple[Finding, ...]


class Saved(Tagged, frozen=True, kw_only=True):
    path: str


Answer = (
    Done
    | Refused
    | StateNow
    | ScriptRead
    | ScriptsFound
    | PlanMade
    | RequestRead
    | RunAccepted
    | RunList
    | RunDetails
    | KeptList
    | Findings
    | Saved
)
