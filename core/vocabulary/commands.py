"""What a user wants, in the imperative. The window, the command line and ``--jsonl`` speak exactly these.

Each is given to ``Node.submit`` and answered by one of ``core.vocabulary.answers``.
"""

from __future__ import annotations

from typing import Literal

from core.vocabulary.holdings import Where
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import SettingsChange
from core.vocabulary.wire import Tagged

MOST_NAME, MOST_NOTE = 120, 4_000
"""Characters of a run's name and note."""

CodePolicy = Literal["ask", "always"]
Decision = Literal["once", "always", "no"]

# --- devices -----------------------------------------------------------------------------------------------


class Pair(Tagged, frozen=True, kw_only=True):
    """Begin pairing with a device seen by discovery, or at ``address`` (``host[:port]``)."""

    device: DeviceId | None = None
    address: str = ""


class AnswerPairing(Tagged, frozen=True, kw_only=True):
    """The person compared the codes on both screens: ``same`` or different."""

    same: bool


class CancelPairing(Tagged, frozen=True, kw_only=True):
    """Give up the pairing under way."""


class Forget(Tagged, frozen=True, kw_only=True):
    """Remove a device's pin, drop its link, end its part in a run."""

    device: DeviceId


class Rename(Tagged, frozen=True, kw_only=True):
    """Give a paired device a nickname; ``""`` takes it away."""

    device: DeviceId
    nickname: str


class SetCodePolicy(Tagged, frozen=True, kw_only=True):
    """Whether a paired device may run code here without asking."""

    device: DeviceId
    policy: CodePolicy


class ListKept(Tagged, frozen=True, kw_only=True):
    """What a paired device keeps of this laptop's projects, and this laptop of its. Answer: ``KeptList``."""

    device: DeviceId


class RemoveKept(Tagged, frozen=True, kw_only=True):
    """Remove one ``project`` with what its runs left, or all of them; not what is recorded of the runs.

    ``where`` ``there``: this laptop's from the device; ``here``: the device's from this laptop. Answer:
    ``KeptList``, with what is left.
    """

    device: DeviceId
    where: Where
    project: ProjectId | None = None


# --- runs --------------------------------------------------------------------------------------------------


class AnalyseScript(Tagged, frozen=True, kw_only=True):
    """Read a script or project folder without running it. Answer: ``ScriptRead``, or ``ScriptsFound``."""

    path: str


class PlanRun(Tagged, frozen=True, kw_only=True):
    """What would be run, where, and with which TF_CONFIG. Answer: ``PlanMade``."""

    spec: RunSpec


class StartRun(Tagged, frozen=True, kw_only=True):
    """Press Train. Answer: ``RunAccepted`` with the run's id as soon as it is planned."""

    spec: RunSpec


class StopRun(Tagged, frozen=True, kw_only=True):
    """End the present run at the end of a step. Again: terminate; a third time: kill."""


class GoOnWaiting(Tagged, frozen=True, kw_only=True):
    """The answer to a run that asks: it may go on waiting, and asks again later. The other is ``StopRun``."""

    run: RunId


class AnswerConsent(Tagged, frozen=True, kw_only=True):
    """The user's decision on a peer's request to run a project here."""

    run: RunId
    decision: Decision


class LookAtRequest(Tagged, frozen=True, kw_only=True):
    """What a peer wants to run here, while the question is open. Answer: ``RequestRead``."""

    run: RunId


class ListRuns(Tagged, frozen=True, kw_only=True):
    """The history, newest first. Answer: ``RunList``."""

    limit: int = 200


class GetRun(Tagged, frozen=True, kw_only=True):
    """One run with its metrics. Answer: ``RunDetails``. ``run`` may be a unique beginning of its id.

    ``points``: false leaves out metrics and log, which of a long run take long to read.
    """

    run: RunId
    points: bool = True


class LabelRun(Tagged, frozen=True, kw_only=True):
    """Give a run a name or a note of one's own, on this laptop; ``""`` takes it away, None leaves it."""

    run: RunId
    name: str | None = None
    note: str | None = None


class DeleteRun(Tagged, frozen=True, kw_only=True):
    """Remove a run from the history, and its folder with log, model and checkpoints, for good."""

    run: RunId


class FindCheckpoints(Tagged, frozen=True, kw_only=True):
    """Ask a run's other laptops that are linked for newer checkpoints than ours: they come as
    ``CheckpointFound``. Answer: ``Done``, once all have answered or after 2 s; some may come later."""

    run: RunId


# --- the node ----------------------------------------------------------------------------------------------


class GetState(Tagged, frozen=True, kw_only=True):
    """Answer: ``StateNow``."""


class RunDoctor(Tagged, frozen=True, kw_only=True):
    """Look at what works here. ``deep`` also loads TensorFlow in a child process. Answer: ``Findings``."""

    deep: bool = False


class Mend(Tagged, frozen=True, kw_only=True):
    """Let Tandem mend one of the doctor's findings (one that has ``mend``)."""

    code: str


class ChangeSettings(Tagged, frozen=True, kw_only=True):
    """Only the fields given change."""

    change: SettingsChange


class SaveDiagnostics(Tagged, frozen=True, kw_only=True):
    """Write a zip with logs, doctor's findings and versions; no secrets, no scripts. Answer: ``Saved``."""

    path: str


class Quit(Tagged, frozen=True, kw_only=True):
    """End this node: its run is stopped, its trainers end."""


Command = (
    Pair
    | AnswerPairing
    | CancelPairing
    | Forget
    | Rename
    | SetCodePolicy
    | ListKept
    | RemoveKept
    | AnalyseScript
    | PlanRun
    | StartRun
    | StopRun
    | GoOnWaiting
    | AnswerConsent
    | LookAtRequest
    | ListRuns
    | GetRun
    | LabelRun
    | DeleteRun
    | FindCheckpoints
    | GetState
    | RunDoctor
    | Mend
    | ChangeSettings
    | SaveDiagnostics
    | Quit
)
