"""Immediate answers to commands. Their consequences follow as events."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId, RunId, SweepId
from core.vocabulary.laptops import LaptopUsed, Machine, MembershipChanged
from core.vocabulary.manifest import ProjectFile
from core.vocabulary.phases import Phase
from core.vocabulary.plan import Moment, Plan, RunSpec
from core.vocabulary.progress import Advice, Best, EpochEnd, Progress, Summary
from core.vocabulary.state import State
from core.vocabulary.sweep import Sweep
from core.vocabulary.wire import Tagged


class Done(Tagged, frozen=True, kw_only=True):
    """Accepted."""


class Refused(Tagged, frozen=True, kw_only=True):
    """Not accepted, and why."""

    problem: Problem


class StateNow(Tagged, frozen=True, kw_only=True):
    state: State


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """An argument that a script declares to ``argparse``, ``click`` or absl: an option, or a positional one,
    whose name has no dashes. ``takes``: one value. ``switch``: off, unless it is given. ``kind``: its type,
    ``int`` or ``float``; empty: not declared. ``required``: the script refuses to run without it."""

    names: tuple[str, ...]
    takes: bool = True
    switch: bool = False
    kind: str = ""
    choices: tuple[str, ...] = ()
    default: str = ""
    help: str = ""
    required: bool = False

    @property
    def is_positional(self) -> bool:
        return not self.names[0].startswith("-")


class ScriptRead(Tagged, frozen=True, kw_only=True):
    """The result of analysing a script. ``mistakes`` are the known ones, each with its line.

    ``kind`` is ``managed`` for ``fit`` in a mirrored strategy, too.
    """

    script: str
    folder: str
    kind: Literal["managed", "own", "neither"]
    strategies: tuple[str, ...] = ()
    """Strategies that the script opens itself."""
    mirrored_loop: bool = False
    """A custom loop in a mirrored strategy, whose replicas are the laptops."""
    mistakes: tuple[Problem, ...] = ()
    files: tuple[ProjectFile, ...] = ()
    skipped: tuple[str, ...] = ()
    options: tuple[Declared, ...] = ()
    total_bytes: int = 0
    code: str = ""
    """See ``Plan.code``."""


class ScriptsFound(Tagged, frozen=True, kw_only=True):
    """A folder with several scripts that train: the user has to choose. Names in ``folder``, in order."""

    folder: str
    scripts: tuple[str, ...]
    problem: Problem


class PlanMade(Tagged, frozen=True, kw_only=True):
    """``tf_configs``: the exact TF_CONFIG texts, by ``device id/task name``; empty for a single device.

    Ports that are not chosen yet are the ones that will be requested.
    """

    plan: Plan
    tf_configs: dict[str, str] = {}
    expectation: str = ""
    """The speed of this script's newest run on these devices, in a sentence; ``""``: no such run."""
    advice: Advice | None = None
    """Advice if that run was hardly faster than a single laptop."""
    warnings: tuple[Problem, ...] = ()
    """Problems that may end the run halfway, such as a missing module whose import may never be reached."""
    last_shares: dict[DeviceId, int] = {}
    """Each device's rows of the batch at that run's end."""


Change = Literal["", "new", "changed", "same", "gone"]
"""A file's change since the version that this user allowed last; ``""``: there is none to compare."""


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a script does beyond computing, from its text. ``what``: a file, an address, a program.

    ``marked``: a reader who does not know the script should check that line.
    """

    kind: Literal["reads", "writes", "downloads", "starts"]
    what: str
    line: int
    marked: bool = False


class RequestFile(msgspec.Struct, frozen=True, kw_only=True):
    """``text``: the code that would run, with hidden characters spelled out (``⟨U+202E⟩``); None: not in the
    request, because it is too large or not text. ``diff``: a unified one. ``note``: what the reader needs to
    know about it."""

    path: str
    size: int
    change: Change = ""
    text: str | None = None
    diff: str = ""
    note: str = ""
    deeds: tuple[Deed, ...] | None = None
    """None: it is not code, or cannot be analysed."""


class RequestRead(Tagged, frozen=True, kw_only=True):
    """The files that a peer wants to run here, the script first. Each text matches the digest in the
    request."""

    run: RunId
    files: tuple[RequestFile, ...]


class RunAccepted(Tagged, frozen=True, kw_only=True):
    run: RunId


class SweepAccepted(Tagged, frozen=True, kw_only=True):
    sweep: SweepId


class RunEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history. ``started_s`` is Unix time; ``phase`` is the last one."""

    run: RunId
    started_s: float
    duration_s: float | None = None
    script: str
    source: str = ""
    """The script's path on the starter's laptop; ``""`` on the others."""
    arguments: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    """Names, chief first."""
    device_ids: tuple[DeviceId, ...] = ()
    """In the order of ``devices``; ``()`` in a record of an earlier Tandem."""
    spec: RunSpec | None = None
    """The user's request; None on the other laptops and in a record of an earlier Tandem."""
    resumed: RunId | None = None
    """The run that it resumed."""
    sweep: str = ""
    """The sweep that this run belongs to."""
    phase: Phase
    summary: Summary = Summary()
    folder: str = ""
    name: str = ""
    """The user's name for it on this laptop; ``""``: none."""
    note: str = ""
    """The user's note about it on this laptop."""
    best: dict[str, Best] = {}
    """The best value of each metric whose name tells which values are better."""
    losses: tuple[float, ...] = ()
    """Losses over the run, in order: a few dozen, for a sparkline; ``()`` in a record of an earlier
    Tandem."""
    machines: dict[DeviceId, Machine] = {}
    """The hardware of its laptops, as far as known here."""
    trials: int = 0
    """For an entry of ``RunList.sweeps``, the number of trials; 0: a run."""
    failed_trials: int = 0


class ReceivedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A run's report that another laptop's user sent. ``sender``: the laptop's name then; ``came_s``: Unix
    time."""

    path: str
    script: str
    sender: str
    came_s: float


class RunList(Tagged, frozen=True, kw_only=True, tag="runs"):
    runs: tuple[RunEntry, ...]
    """Trials do not count towards the limit."""
    sweeps: tuple[RunEntry, ...] = ()
    """Sweeps started here, newest first, each as one entry: ``run`` is its id, which the commands for a run
    accept, too; arguments, best values and losses are those of the best trial."""
    problem: Problem | None = None
    """Why the list may be incomplete: some runs' records could not be read."""
    reports: tuple[ReceivedReport, ...] = ()
    """Reports from other laptops, newest first."""


class RunDetails(Tagged, frozen=True, kw_only=True):
    """``steps`` and ``epochs``: by device id, in order; thinned to a few thousand points a device."""

    entry: RunEntry
    plan: Plan | None = None
    steps: dict[DeviceId, tuple[Progress, ...]] = {}
    epochs: dict[DeviceId, tuple[EpochEnd, ...]] = {}
    uses: dict[DeviceId, tuple[LaptopUsed, ...]] = {}
    """How busy its laptops were, in order; thinned like ``steps``."""
    membership: tuple[MembershipChanged, ...] = ()
    """Members that joined and left, in order."""
    log: str = ""
    """The end of the run's log, at most 64 KiB."""
    report: str = ""
    """Path of the run's one-page report (HTML) on the node's laptop; ``""`` where there is none."""
    checkpoint: Moment | None = None
    """The newest checkpoint on this laptop. ``RunSpec.resume`` continues there unless another laptop has a
    newer one (``FindCheckpoints``)."""
    sweep: Sweep | None = None
    """Set if the id is a sweep's."""

    @property
    def left(self) -> set[DeviceId]:
        """Members that left or were lost and did not return, whether or not the others went on."""
        last = {turn.device: turn.change for turn in self.membership}
        return {device for device, change in last.items() if change in ("left", "lost")}


class StorageMeasured(Tagged, frozen=True, kw_only=True):
    """Sizes in bytes, by kind. A file that has several names counts once."""

    projects_bytes: int
    """Other laptops' projects, and what has arrived in unfinished transfers of projects and data."""
    data_bytes: int
    """Data of other laptops."""
    runs_bytes: int
    """Files of runs that other laptops started, without their records."""
    reports_bytes: int
    """Reports that other laptops sent."""
    own_bytes: int
    """Outputs of own runs that were not brought back (``outputs-left``)."""


class Cleared(Tagged, frozen=True, kw_only=True):
    freed_bytes: int


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of the doctor. ``mend`` True: Tandem can fix it (``Mend(code=...)``). ``command`` and
    ``command_on``: as in a ``Problem``."""

    code: str
    topic: str
    level: Literal["ok", "note", "warning", "error"]
    what: str
    fix: str = ""
    mend: bool = False
    command: str = ""
    command_on: str = ""


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
    | SweepAccepted
    | RunList
    | RunDetails
    | StorageMeasured
    | Cleared
    | Findings
    | Saved
)
