"""Whether a peer's request to take part in its run can be taken at its word. Pure."""

from __future__ import annotations

from collections import deque

from core.project.checkpoint_store import check_listing
from core.run import verdicts
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest, check_project
from core.vocabulary.plan import Plan
from core.vocabulary.run_folder import is_run_id

RUNS_REMEMBERED = 10_000


def why_unfit(
    me: DeviceId, sender: DeviceId, plan: Plan, manifest: Manifest, checkpoint: Manifest | None = None
) -> Problem | None:
    """What is wrong with a request at a first look; None where nothing is. Quick, whatever was sent."""
    devices = {member.device for member in plan.members}
    fits = (
        is_run_id(plan.run)
        and plan.starter == sender
        and me in devices
        and {task.device for task in plan.tasks} == devices
        and plan.script == manifest.script
        and _resumes_soundly(plan, checkpoint)
    )
    return None if fits else verdicts.bad_message("The other laptop")


def _resumes_soundly(plan: Plan, checkpoint: Manifest | None) -> bool:
    if plan.resume is None or checkpoint is None:
        return plan.resume is None and checkpoint is None
    return is_run_id(plan.resume.run) and checkpoint.digest == plan.resume.checkpoint


def why_unsafe(plan: Plan, manifest: Manifest, checkpoint: Manifest | None = None) -> Problem | None:
    """What is wrong with the files that are announced. Thousands of names are looked at: use a thread."""
    if plan.project != manifest.digest:
        return verdicts.bad_message("The other laptop")
    try:
        check_project(manifest)
        if checkpoint is not None:
            check_listing(checkpoint)
    except TandemError as error:
        return error.problem
    return None


class HeardOf:
    """The ids under which peers sent runs. Each may be used once.

    Security invariant: a user's answer names the run that it is about. Were a second request taken under the
    same id, the answer to the first question would allow what was never shown.
    """

    def __init__(self, most: int = RUNS_REMEMBERED) -> None:
        self._most = most
        self._runs: set[RunId] = set()
        self._in_order: deque[RunId] = deque()

    def take(self, run: RunId) -> bool:
        """False: this id was used before."""
        if run in self._runs:
            return False
        self._runs.add(run)
        self._in_order.append(run)
        if len(self._in_order) > self._most:
            self._runs.discard(self._in_order.popleft())
        return True
