"""What a peer's request meets before this user does: is it sound, new, allowed before? On the core loop.

Who may run what is kept in the trust store, for each device.
"""

from __future__ import annotations

from core.home.trust import approve, may_run, set_policy
from core.home.trust_keeper import TrustKeeper
from core.run import participation as pa
from core.run import planning, verdicts
from core.run.request import HeardOf, why_unfit, why_unsafe
from core.run.workplace import Workplace, trouble_of
from core.vocabulary.commands import Decision
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest
from core.vocabulary.peer_messages import Prepare
from core.vocabulary.plan import Plan


class Reception:
    """One for a node's life."""

    def __init__(self, place: Workplace, trust: TrustKeeper) -> None:
        self._place = place
        self._trust = trust
        self._heard_of = HeardOf()

    def why_refused(
        self, sender: DeviceId, prepare: Prepare, *, unlike: Problem | None, busy: bool
    ) -> Problem | None:
        """At a first look. ``unlike``: what of the two laptops' versions differs."""
        if problem := self._why_unfit(sender, prepare) or unlike:
            return problem
        if busy:
            return verdicts.busy()
        return None if self._heard_of.take(prepare.plan.run) else verdicts.known_run()

    def _why_unfit(self, sender: DeviceId, prepare: Prepare) -> Problem | None:
        return why_unfit(self._place.me, sender, prepare.plan, prepare.manifest, prepare.checkpoint)

    async def ask(self, plan: Plan, manifest: Manifest, checkpoint: Manifest | None) -> pa.Asked:
        """Whether this user has to be asked. Never raises: the starter is waiting for an answer."""
        try:
            return await self._ask(plan, manifest, checkpoint)
        except Exception as error:
            refusal = trouble_of(
                error,
                "not-prepared",
                "it could not look at the request.",
                "Start the run again; the log of Tandem there has the details.",
            )
            return pa.Asked(allowed=False, refusal=refusal)

    async def allow(self, plan: Plan, decision: Decision) -> None:
        """This user said yes. Raises ``TandemError`` where that cannot be kept."""
        await self._trust.change(lambda store: approve(store, plan.starter, plan.project, plan.arguments))
        if decision == "always":
            await self._trust.change(lambda store: set_policy(store, plan.starter, "always"))

    async def _ask(self, plan: Plan, manifest: Manifest, checkpoint: Manifest | None) -> pa.Asked:
        refusal = await self._place.files.do(self._look, plan, manifest, checkpoint)
        if refusal is not None:
            return pa.Asked(allowed=False, refusal=refusal)
        peer = self._trust.store.peer(plan.starter)
        changed = False
        if peer is not None and not self._may_run(plan):
            changed = await self._place.files.do(
                planning.was_allowed_before, self._place.store, peer.approved_projects, plan.script
            )
        return pa.Asked(allowed=self._may_run(plan), changed=changed)

    def _may_run(self, plan: Plan) -> bool:
        return may_run(self._trust.store, plan.starter, plan.project, plan.arguments)

    def _look(self, plan: Plan, manifest: Manifest, checkpoint: Manifest | None) -> Problem | None:
        """On the files' thread: a list of files may be long, and made to be slow."""
        if self._place.folder(plan.run).exists():
            return verdicts.known_run()
        return why_unsafe(plan, manifest, checkpoint)
