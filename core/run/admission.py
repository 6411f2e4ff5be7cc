"""Checks a request to take part before this user sees it: sound, new, allowed before? On the core loop.

Who may run what stands in the trust store, for each device.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import get_args

from core.cluster.make_plan import LEAST_AWAY_S, MOST_PATIENT_S
from core.home.trust import approve, may_run, set_policy
from core.home.trust_file import SavedTrust
from core.project.checkpoint_store import check_listing
from core.project.look import look_at
from core.project.texts import are_of
from core.run import planning, problems
from core.run.context import RunContext
from core.run.participant import state as pa
from core.run.transfer import problem_of
from core.vocabulary.answers import RequestRead
from core.vocabulary.commands import Decision
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import RunPhaseChanged
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Manifest, check_project
from core.vocabulary.peer_messages import Declined, Message, Mirrored, Prepare, Resumed, RunAbandoned
from core.vocabulary.plan import COMPUTING, Plan, PlannedExchange
from core.vocabulary.run_folder import is_run_id
from core.vocabulary.state import Run

RUNS_REMEMBERED = 10_000


class Admission:
    """One for a node's life."""

    def __init__(self, context: RunContext, trust: SavedTrust) -> None:
        self._context = context
        self._trust = trust
        self._used_ids = UsedRunIds()

    def why_unfit(self, sender: DeviceId, prepare: Prepare, unlike: Problem | None) -> Problem | None:
        """At first sight. ``unlike``: what of the two laptops' versions differs."""
        me, plan = self._context.me, prepare.plan
        return why_unfit(me, sender, plan, prepare.manifest, prepare.checkpoint) or unlike

    def take(self, run: RunId) -> Problem | None:
        """Begin to deal with a request; None: it is new."""
        return self._used_ids.take(run)

    def over(self, member: pa.Participation) -> None:
        """This laptop's part is over. A starter that did not hear of a refusal asks again."""
        if member.refusal is not None:
            self._used_ids.refuse(member.plan.run, member.refusal)

    async def ask(self, asking: pa.Participation) -> pa.Asked:
        """Whether this user has to be asked. Never raises: the starter is waiting for an answer."""
        try:
            return await self._ask(asking)
        except Exception as error:
            refusal = problem_of(
                error,
                "not-prepared",
                "it could not look at the request.",
                "Start the run again; the log of Tandem there has the details.",
            )
            return pa.Asked(allowed=False, refusal=refusal)

    async def allow(self, plan: Plan, decision: Decision) -> None:
        """This user said yes. Raises ``TandemError`` where that cannot be stored."""
        await self._trust.change(lambda store: approve(store, plan.starter, plan.project, plan.arguments))
        if decision == "always":
            await self._trust.change(lambda store: set_policy(store, plan.starter, "always"))

    async def look(self, asking: pa.Participation) -> RequestRead:
        """What this user is asked about, and what of it changed since the last yes."""
        peer = self._trust.store.peer(asking.plan.starter)
        approved = () if peer is None else peer.approved_projects
        # Not on the files' thread: texts may be made to be slow to compare.
        files = await asyncio.to_thread(look_at, asking.manifest, asking.texts, self._context.store, approved)
        return RequestRead(run=asking.plan.run, files=files)

    async def _ask(self, asking: pa.Participation) -> pa.Asked:
        plan = asking.plan
        refusal = await self._context.files.do(self._why_not, asking)
        if refusal is not None:
            return pa.Asked(allowed=False, refusal=refusal)
        peer = self._trust.store.peer(plan.starter)
        differs = None
        if peer is not None and not may_run(self._trust.store, plan.starter, plan.project, plan.arguments):
            differs = await self._context.files.do(
                planning.since_allowed, self._context.store, peer.approved_projects, asking.manifest
            )
        return pa.Asked(allowed=self._may_run(plan), differs=differs)

    def _may_run(self, plan: Plan) -> bool:
        # Whatever was allowed before: an open port is accepted for one run.
        return not plan.opens_port and may_run(self._trust.store, plan.starter, plan.project, plan.arguments)

    def _why_not(self, asking: pa.Participation) -> Problem | None:
        """On the files' thread: a list of files may be long, and made to be slow."""
        if self._context.folder(asking.plan.run).exists():
            return problems.known_run()
        return why_unsafe(asking.plan, asking.manifest, asking.checkpoint, asking.texts)


def why_unfit(
    me: DeviceId, sender: DeviceId, plan: Plan, manifest: Manifest, checkpoint: Manifest | None = None
) -> Problem | None:
    """What is wrong with a request at first sight; None: nothing. Quick, whatever was sent."""
    devices = {member.device for member in plan.members}
    fits = (
        is_run_id(plan.run)
        and plan.starter == sender
        and me in devices
        and {task.device for task in plan.tasks} == devices
        and plan.script == manifest.script
        and (plan.exchange != "tls" or all(task.role in COMPUTING for task in plan.tasks))
        and LEAST_AWAY_S <= plan.away_s <= MOST_PATIENT_S
        and 0.0 <= plan.ask_after_s <= MOST_PATIENT_S
        and _resumes_soundly(plan, checkpoint)
    )
    if not fits:
        return problems.bad_message("The other laptop")
    known = plan.exchange in get_args(PlannedExchange)
    return None if known else problems.unknown_exchange(plan.exchange)


def _resumes_soundly(plan: Plan, checkpoint: Manifest | None) -> bool:
    if plan.resume is None or checkpoint is None:
        return plan.resume is None and checkpoint is None
    return is_run_id(plan.resume.run) and checkpoint.digest == plan.resume.checkpoint


def why_unsafe(
    plan: Plan,
    manifest: Manifest,
    checkpoint: Manifest | None = None,
    texts: Mapping[str, bytes] = MappingProxyType({}),
) -> Problem | None:
    """What is wrong with the files that are announced. Thousands of names are looked at: use a thread."""
    if plan.project != manifest.digest or not are_of(texts, manifest):
        return problems.bad_message("The other laptop")
    try:
        check_project(manifest)
        if checkpoint is not None:
            check_listing(checkpoint)
    except TandemError as error:
        return error.problem
    return None


class UsedRunIds:
    """The ids under which peers sent runs, and with what some were refused. Each may be used once.

    Security invariant: a user's answer names the run that it is about. Were a second request taken under the
    same id, the answer to the first question would allow what was never shown.
    """

    def __init__(self, most: int = RUNS_REMEMBERED) -> None:
        self._most = most
        self._runs: dict[RunId, Problem | None] = {}
        """In the order in which they came."""

    def take(self, run: RunId) -> Problem | None:
        """None: this id is new. Else why a run with it is not taken."""
        if run in self._runs:
            return self._runs[run] or problems.known_run()
        self._runs[run] = None
        if len(self._runs) > self._most:
            del self._runs[next(iter(self._runs))]
        return None

    def refuse(self, run: RunId, refusal: Problem) -> None:
        """Whoever comes with this id again hears the same."""
        if run in self._runs:
            self._runs[run] = refusal


def stray_answer(message: Resumed, me: str, last: Run | None) -> Message:
    """To a laptop that is back, and wants to go on with a run of which nothing is here any more.

    ``last``: the run that was last shown here.
    """
    if message.from_starter:
        return Declined(run=message.run, problem=problems.part_gone())
    if last is not None and last.over and last.plan.run == message.run:
        return Mirrored(event=RunPhaseChanged(run=message.run, phase=last.phase))
    return RunAbandoned(run=message.run, problem=problems.over_meanwhile(me))
