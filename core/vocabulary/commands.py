"""Commands of the user, in the imperative. The window, the command line and ``--jsonl`` send exactly these.

Each goes to ``Node.submit`` and is answered by one of ``core.vocabulary.answers``.
"""

from __future__ import annotations

from typing import Literal

from core.vocabulary.bounds import Argument, Detail, Few, FilePath, Many, Name, Word, Words
from core.vocabulary.ids import DeviceId, RunId, SweepId
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from core.vocabulary.sweep import SweepSpec
from core.vocabulary.wire import Tagged

MOST_NAME, MOST_NOTE = 120, 4_000
"""Characters of a run's name and note."""

CodePolicy = Literal["ask", "always"]
Decision = Literal["once", "always", "no"]

# --- devices -----------------------------------------------------------------------------------------------


class Pair(Tagged, frozen=True, kw_only=True):
    """Begin pairing with a device seen by discovery, or at ``address`` (``host[:port]``)."""

    device: DeviceId | None = None
    address: Name = ""


class AnswerPairing(Tagged, frozen=True, kw_only=True):
    """The person compared the codes on both screens: ``same`` or different."""

    same: bool


class CancelPairing(Tagged, frozen=True, kw_only=True):
    """Give up the pairing under way."""


class Forget(Tagged, frozen=True, kw_only=True):
    """Remove a device's pin, drop its link, end its part in a run."""

    device: DeviceId


class Rename(Tagged, frozen=True, kw_only=True):
    """Give a paired device a nickname; ``""`` removes it."""

    device: DeviceId
    nickname: Words


class SetCodePolicy(Tagged, frozen=True, kw_only=True):
    """Whether a paired device may run code here without asking."""

    device: DeviceId
    policy: CodePolicy


# --- runs --------------------------------------------------------------------------------------------------


class AnalyseScript(Tagged, frozen=True, kw_only=True):
    """Read a script or project folder without running it. Answer: ``ScriptRead``, or ``ScriptsFound``."""

    path: FilePath


class ForeseeRun(Tagged, frozen=True, kw_only=True):
    """A run may begin here soon: TensorFlow is loaded ahead, if the settings allow that."""


class PlanRun(Tagged, frozen=True, kw_only=True):
    """Show what would be run, where, and with which TF_CONFIG. Answer: ``PlanMade``."""

    spec: RunSpec


class StartRun(Tagged, frozen=True, kw_only=True):
    """Press Train. Answer: ``RunAccepted`` with the run's id as soon as it is planned."""

    spec: RunSpec


class StopRun(Tagged, frozen=True, kw_only=True):
    """Stop the present run at the end of a step. Again: terminate; a third time: kill. A trial's whole sweep
    stops, on the laptop that started it."""


class StartSweep(Tagged, frozen=True, kw_only=True):
    """Train with several sets of arguments, each on one laptop. Answer: ``SweepAccepted``."""

    spec: SweepSpec


class ResumeSweep(Tagged, frozen=True, kw_only=True):
    """Continue a sweep that was started here with its trials that have no result yet. Answer:
    ``SweepAccepted``."""

    sweep: SweepId
    argument_sets: Few[Many[Argument]] = ()
    """More trials, also for one under way. Other laptops' users are asked again."""


class StopSweep(Tagged, frozen=True, kw_only=True):
    """Stop every trial at the end of a step, and start no more. Again: terminate; a third time: kill."""


class GoOnWaiting(Tagged, frozen=True, kw_only=True):
    """Keep waiting in a run that asks; it asks again later. The alternative is ``StopRun``."""

    run: RunId


class AddLaptops(Tagged, frozen=True, kw_only=True):
    """Add paired laptops to a run that this one started. They are asked first; then the run stops at the end
    of a step and goes on with them."""

    run: RunId
    devices: Few[DeviceId]


class LeaveRun(Tagged, frozen=True, kw_only=True):
    """End this laptop's part in the run under way, after the present step; the others go on. Refused with
    ``not-leavable`` where they cannot."""

    run: RunId


class AnswerConsent(Tagged, frozen=True, kw_only=True):
    """The user's decision on a peer's request to run a project here."""

    run: RunId
    decision: Decision


class LookAtRequest(Tagged, frozen=True, kw_only=True):
    """Show the files that a peer wants to run here, while its request is open. Answer: ``RequestRead``."""

    run: RunId


class ListRuns(Tagged, frozen=True, kw_only=True):
    """The history, newest first. Answer: ``RunList``."""

    limit: int = 200


class GetRun(Tagged, frozen=True, kw_only=True):
    """One run with its metrics. Answer: ``RunDetails``. ``run`` may be a unique beginning of its id.

    ``points``: false omits metrics and log, which are slow to read for a long run.
    """

    run: RunId
    points: bool = True


class SendReport(Tagged, frozen=True, kw_only=True):
    """Send a run's report to a paired laptop, and notify its user. ``run`` may be a unique beginning of its
    id."""

    run: RunId
    device: DeviceId


class DeleteReport(Tagged, frozen=True, kw_only=True):
    """Delete a report that another laptop sent (``RunList.reports``). ``path``: as listed."""

    path: FilePath


class AskToInstall(Tagged, frozen=True, kw_only=True):
    """Ask a paired laptop's user to install the packages that it lacked when last checked. With this laptop's
    own id: install here those that this one lacked."""

    device: DeviceId


class Install(Tagged, frozen=True, kw_only=True):
    """The user's yes: install here what that laptop asked for. ``packages``: as the user saw them; refused if
    the laptop asks for others by now. ``allowed`` false: the user's no, which the asker hears at once."""

    device: DeviceId
    packages: Few[Name]
    allowed: bool = True


class LabelRun(Tagged, frozen=True, kw_only=True):
    """Give a run a personal name or note on this laptop; ``""`` removes it, None keeps it."""

    run: RunId
    name: Detail | None = None
    note: Detail | None = None


class DeleteRun(Tagged, frozen=True, kw_only=True):
    """Remove a run from the history, and its folder with log, model and checkpoints, for good."""

    run: RunId


class FindCheckpoints(Tagged, frozen=True, kw_only=True):
    """Ask a run's other linked laptops for newer checkpoints than ours, reported as ``CheckpointFound``.
    Answer: ``Done``, once all have answered or after 2 s; some may be reported later."""

    run: RunId


# --- the node ----------------------------------------------------------------------------------------------


class GetState(Tagged, frozen=True, kw_only=True):
    """Answer: ``StateNow``."""


class RunDoctor(Tagged, frozen=True, kw_only=True):
    """Check what works here. ``deep`` also loads TensorFlow in a child process. Answer: ``Findings``."""

    deep: bool = False


class Mend(Tagged, frozen=True, kw_only=True):
    """Fix one of the doctor's findings (one that has ``mend``)."""

    code: Word


class MeasureStorage(Tagged, frozen=True, kw_only=True):
    """Measure what ``Clear`` would remove. Answer: ``StorageMeasured``."""


class Clear(Tagged, frozen=True, kw_only=True):
    """Remove other laptops' projects, data, run files and reports from this laptop, and what own runs could
    not bring back. Records of runs stay. Answer: ``Cleared``."""


class ChangeSettings(Tagged, frozen=True, kw_only=True):
    """Only the fields given change."""

    change: SettingsChange


class SaveDiagnostics(Tagged, frozen=True, kw_only=True):
    """Write a zip with logs, doctor's findings and versions; no secrets, no scripts. Answer: ``Saved``."""

    path: FilePath


class Quit(Tagged, frozen=True, kw_only=True):
    """End this node: its run is stopped, its trainers end. ``leaves``: the system ends the node; the others
    go on with its run, and this node's next start does so too, or offers to."""

    leaves: bool = False


Command = (
    Pair
    | AnswerPairing
    | CancelPairing
    | Forget
    | Rename
    | SetCodePolicy
    | AnalyseScript
    | ForeseeRun
    | PlanRun
    | StartRun
    | StopRun
    | StartSweep
    | ResumeSweep
    | StopSweep
    | GoOnWaiting
    | AddLaptops
    | LeaveRun
    | AnswerConsent
    | LookAtRequest
    | ListRuns
    | GetRun
    | SendReport
    | DeleteReport
    | AskToInstall
    | Install
    | LabelRun
    | DeleteRun
    | FindCheckpoints
    | GetState
    | RunDoctor
    | Mend
    | ChangeSettings
    | MeasureStorage
    | Clear
    | SaveDiagnostics
    | Quit
)
