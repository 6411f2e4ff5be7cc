"""Checks a request to take part before this user sees it: is it valid, new, allowed before? On the
core loop.

The trust store has each device's permissions.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import get_args

from core.cluster.make_plan import LEAST_AWAY_S, MOST_PATIENT_S
from core.history.read import read_entry, read_plan
from core.home.trust import approve, may_run, set_policy
from core.home.trust_file import SavedTrust
from core.pairing.throttle import RetryDelay
from core.project.checkpoint_store import check_listing
from core.project.look import look_at
from core.project.texts import match_manifest
from core.run import planning, problems, return_problems, written
from core.run.context import RunContext
from core.run.participant import state as pa
from core.run.participant.driver import ParticipantDriver
from core.run.resume.plan import owner_of
from core.run.transfer import problem_of
from core.vocabulary.answers import RequestRead
from core.vocabulary.commands import Decision
from core.vocabulary.data import is_sound
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.manifest import check_project
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.permission import Permission, asked_by, beyond, covers
from core.vocabulary.phases import Stopped
from core.vocabulary.plan import COMPUTING, Exchange, Plan, Task
from core.vocabulary.run_folder import is_run_id

RUNS_REMEMBERED = 10_000
_HOST = re.compile(r"[A-Za-z0-9.:%_-]{0,255}")
"""A host name or an address of either family, with a scope; empty for a single process."""


class Admission:
    """One per node."""

    def __init__(self, context: RunContext, trust: SavedTrust) -> None:
        self._context = context
        self._trust = trust
        self._used_ids = UsedRunIds()
        self._pauses: dict[DeviceId, RetryDelay] = {}
        """Pauses for devices whose requests this user declined, or which withdrew them."""
        self._asked: dict[RunId, Permission] = {}
        """The permission that each open question shows: a yes allows that, even if a folder changed since."""

    def why_unfit(self, sender: DeviceId, prepare: Prepare, mismatch: Problem | None) -> Problem | None:
        """Quick checks; None: the request passes. ``mismatch``: how the two laptops' versions differ."""
        pause = self._pauses.get(sender)
        if pause is not None and (left_s := pause.left_s(self._context.clock.time())):
            return problems.asked_too_often(left_s)
        return why_unfit(self._context.me, sender, prepare) or mismatch

    def claim(self, run: RunId) -> Problem | None:
        """Begin to handle a request. Returns why it is refused; None: its id is new."""
        return self._used_ids.claim(run)

    def on_part_over(self, member: pa.Participation) -> None:
        """This laptop's part is over. Remembers its refusal for a starter that missed it and asks again."""
        if member.refusal is not None:
            self._used_ids.refuse(member.plan.run, member.refusal)
        self._asked.pop(member.plan.run, None)
        starter = member.plan.starter
        if member.allowed:
            self._pauses.pop(starter, None)
        elif member.allowed is not None:
            before = self._pauses.get(starter, RetryDelay())
            self._pauses[starter] = before.after_failure(self._context.clock.time())

    async def ask(self, participant: ParticipantDriver) -> pa.Checked:
        """Whether to ask this user. Never raises: the starter is waiting for an answer."""
        try:
            if participant.state.local:
                return await self._stand_in(participant.state.plan)
            await participant.complete_request()
            return await self._ask(participant.state)
        except Exception as error:
            refusal = problem_of(
                error,
                "not-prepared",
                "it could not look at the request.",
                "Start the run again; the log of Tandem there has the details.",
            )
            return pa.Checked(allowed=False, refusal=refusal)

    async def allow(self, plan: Plan, decision: Decision) -> None:
        """This user said yes. Raises ``TandemError`` where that cannot be stored."""
        walls, asked = self._context.level.walls, self._asked[plan.run]
        await self._trust.change(lambda store: approve(store, plan.starter, asked))
        if decision == "always":
            await self._trust.change(lambda store: set_policy(store, plan.starter, "always", walls))

    async def look(self, asking: pa.Participation) -> RequestRead:
        """The files of a request, and what changed in them since the user's last yes."""
        peer = self._trust.store.peer(asking.plan.starter)
        approved = () if peer is None else peer.approved_projects
        # Not on the files' thread: texts may be crafted to be slow to compare.
        texts, store = asking.request.texts, self._context.store
        files = await asyncio.to_thread(look_at, asking.manifest, texts, store, approved)
        return RequestRead(run=asking.plan.run, files=files)

    async def _ask(self, asking: pa.Participation) -> pa.Checked:
        plan = asking.plan
        refusal = await self._context.files.do(self._why_not, asking)
        if refusal is not None:
            return pa.Checked(allowed=False, refusal=refusal)
        level = self._context.level
        opened = await self._context.files.do(self._context.reach_of, plan)
        lacking = await self._context.files.do(self._context.lacking_data, plan)
        sent = [data.listing.digest for data in lacking]
        asked = self._asked[plan.run] = asked_by(plan, level.walls, level.gaps, opened, sent)
        if may_run(self._trust.store, plan.starter, asked) or await self._context.files.do(
            self._continues_allowed_run, plan, asked
        ):
            return pa.Checked(allowed=True, reach=asked, opened=opened, gaps=level.gaps)
        peer = self._trust.store.peer(plan.starter)
        if peer is None:  # introduced only to go on with a run, and this is another one
            return pa.Checked(allowed=False, refusal=return_problems.reaches_more())
        approved, projects = peer.approved, peer.approved_projects
        before = await self._context.files.do(
            planning.since_allowed, self._context.store, projects, asking.manifest
        )
        rate_bytes_s = await self._context.files.do(self._context.rates.get, plan.starter)
        found = pa.Checked(
            allowed=False, reach=asked, opened=opened, gaps=level.gaps, rate_bytes_s=rate_bytes_s
        )
        if before is None:
            return found
        last, differs = before
        wider = min((beyond(each, asked) for each in approved if each.project == last), key=len)
        return replace(found, differs=differs, beyond=wider)

    async def _stand_in(self, plan: Plan) -> pa.Checked:
        """Admit a run that this laptop starts for a lost starter. Nobody is asked: a run that reaches more
        than that starter may here is refused."""
        opened = await self._context.files.do(self._context.reach_of, plan)
        level, owner = self._context.level, owner_of(plan).device
        if may_run(self._trust.store, owner, asked_by(plan, level.walls, level.gaps, opened)):
            return pa.Checked(allowed=True)
        return pa.Checked(allowed=False, refusal=return_problems.reaches_more())

    def _continues_allowed_run(self, plan: Plan, asked: Permission) -> bool:
        """Whether this request goes on with a run that this user allowed and whose starter was lost. Both
        laptops must have been in that run, and the request asks for no more than it did. On the files'
        thread.

        Security invariant: nor for more than the lost starter was allowed. The earlier plan's paths may lead
        elsewhere now, because its script changed them.
        """
        folder = self._context.folder(plan.run if plan.resume is None else plan.resume.run)
        before, ended = read_plan(folder), read_entry(folder)
        if before is None or plan.owner is None or ended is None:
            return False
        members = {member.device: member.name for member in before.members}
        # A part ends in this laptop's own name only when it goes on without the starter.
        by = members.get(self._context.me)
        if not (isinstance(ended.phase, Stopped) and ended.phase.goes_on and ended.phase.by == by):
            return False
        level = self._context.level
        allowed = asked_by(before, level.walls, level.gaps, self._context.reach_of(before))
        is_same = owner_of(before) == plan.owner and plan.starter in members and covers(allowed, asked)
        return is_same and may_run(self._trust.store, plan.owner.device, asked)

    def _why_not(self, asking: pa.Participation) -> Problem | None:
        """On the files' thread: a list of files may be long, and crafted to be slow."""
        if self._context.folder(asking.plan.run).exists():
            return problems.known_run()
        if unsafe := why_unsafe(asking.request):
            return unsafe
        try:
            plan, folders, store = asking.plan, self._context.folders(), self._context.store
            lacking = (data for data in self._context.lacking_data(plan) if data.name not in folders)
            coming = sum(
                max(0, data.total_bytes - store.came_bytes(ProjectId(data.listing.digest)))
                for data in lacking
            )
            copies = len(plan.tasks_of(self._context.me))
            wrote = asking.request.written
            coming += 0 if wrote is None else wrote.total_bytes * (1 + copies)
            store.check_room(asking.manifest, copies, coming)
        except TandemError as error:
            return error.problem
        return None


def why_unfit(me: DeviceId, sender: DeviceId, prepare: Prepare) -> Problem | None:
    """Why a request is refused at first sight; None: it passes. Quick, whatever was sent."""
    plan = prepare.plan
    devices = {member.device for member in plan.members}
    fits = (
        is_run_id(plan.run)
        and plan.starter == sender
        and me in devices
        and {task.device for task in plan.tasks} == devices
        and plan.script == prepare.manifest.script
        and (prepare.listing is None or prepare.listing.digest == plan.project)
        and (plan.trial is None or plan.arguments in plan.trial.argument_sets)
        and all(_is_placed_soundly(task) for task in plan.tasks)
        and (plan.exchange != "tls" or all(task.role in COMPUTING for task in plan.tasks))
        and LEAST_AWAY_S <= plan.away_s <= MOST_PATIENT_S
        and 0.0 <= plan.go_on_s <= MOST_PATIENT_S
        and 0.0 <= plan.ask_after_s <= MOST_PATIENT_S
        and _resumes_soundly(prepare)
        and all(map(is_sound, plan.data))
    )
    if not fits:
        return problems.bad_message("The other laptop")
    if plan.exchange not in get_args(Exchange):
        return problems.unknown_exchange(plan.exchange)
    # Security invariant: TensorFlow's port is never open to the network.
    return problems.by_tensorflow().problem if plan.exchange == "tensorflow" and not plan.solo else None


def _is_placed_soundly(task: Task) -> bool:
    """These values become part of TF_CONFIG, an environment variable of the trainer."""
    return _HOST.fullmatch(task.host) is not None and 0 <= task.port < 2**16 and 0 <= task.index < 2**16


def _resumes_soundly(prepare: Prepare) -> bool:
    resume, checkpoint = prepare.plan.resume, prepare.checkpoint
    if resume is None or checkpoint is None:
        return resume is None and checkpoint is None and prepare.written is None
    return is_run_id(resume.run) and checkpoint.digest == resume.checkpoint


def why_unsafe(request: Prepare) -> Problem | None:
    """Why the announced files are unsafe; None: they are safe. Checks thousands of names: use a thread."""
    plan, manifest = request.plan, request.manifest
    # The manifest may have come as a file, and differ from the one that the request named.
    if (plan.project, plan.script) != (manifest.digest, manifest.script) or not match_manifest(
        request.texts, manifest
    ):
        return problems.bad_message("The other laptop")
    try:
        check_project(manifest)
        if request.checkpoint is not None:
            check_listing(request.checkpoint)
        if request.written is not None:
            written.check(request.written, manifest)
    except TandemError as error:
        return error.problem
    return None


class UsedRunIds:
    """Run ids that peers have used, and the refusals of some. Each may be used once.

    Security invariant: a user's answer names its run. Were a second request accepted under the same id, the
    answer to the first question would allow something that was never shown.
    """

    def __init__(self, most: int = RUNS_REMEMBERED) -> None:
        self._most = most
        self._runs: dict[RunId, Problem | None] = {}
        """In order of arrival."""

    def claim(self, run: RunId) -> Problem | None:
        """Record this id. Returns why a run with it is refused; None: the id is new."""
        if run in self._runs:
            return self._runs[run] or problems.known_run()
        self._runs[run] = None
        if len(self._runs) > self._most:
            del self._runs[next(iter(self._runs))]
        return None

    def refuse(self, run: RunId, refusal: Problem) -> None:
        """Refuse every further request with this id for the same reason."""
        if run in self._runs:
            self._runs[run] = refusal
