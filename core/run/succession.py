"""A run whose starter's laptop was lost: another member stands in for it, and hands the training back when
the starter is there again. On the core loop.

The members that are left stop at the end of a step (``core.run.participant.ending``). The first of them in
the plan resumes the run with those that it is linked with, and tells the starter when it returns. The starter
alone decides which state goes on: its own, if it went on as well and is as far; otherwise the member's, from
whose checkpoint it resumes the run as it would any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from msgspec import structs

from core.project import checkpoint_store
from core.run import return_problems
from core.run.context import RunContext
from core.run.continuation import Continuation, Next
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.participant import state as pa
from core.run.planner import Planner
from core.run.recorder import Recorder
from core.run.resume.plan import owner_of
from core.run.resume.serve import note_successor
from core.run.stand_in import StandIn
from core.vocabulary import peer_messages as ms
from core.vocabulary import run_folder
from core.vocabulary.errors import OVERTAKEN, Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Failed
from core.vocabulary.plan import Plan, RunOwner, RunSpec
from core.vocabulary.traffic import LinkBack, LinkLost


@dataclass(frozen=True, slots=True)
class Lost:
    """A run that a crash of this node or its trainer ended. ``runs``: it, and those that it resumes;
    ``devices``: laptops that were in one of these; ``step``: steps done here."""

    following: Next
    runs: frozenset[RunId]
    devices: frozenset[DeviceId]
    step: int


class Succession:
    """Both sides of it on this node."""

    def __init__(
        self,
        context: RunContext,
        planner: Planner,
        continuation: Continuation,
        *,
        coordinator: Callable[[], CoordinatorDriver | None],
        bring_in: Callable[[DeviceId], None],
    ) -> None:
        """``bring_in``: into the run that is, or will be, under way here."""
        self._context = context
        self._planner = planner
        self._continuation = continuation
        self._coordinator = coordinator
        self._bring_in = bring_in
        self._stand_in: StandIn | None = None
        self.has_handed_back = False
        """The run here ends, or has ended, only to go on elsewhere."""
        self.lost: Lost | None = None
        """To be continued if a member went on with one of its runs."""
        self._chain: set[RunId] = set()
        """The run under way that was started here, and those that it resumes."""
        self._were_in: set[DeviceId] = set()
        """The laptops that were in one of these.

        Security invariant: nobody else ends the run, or gets into it, by claiming to have gone on with it.
        """
        self._ahead: tuple[RunId, DeviceId, str] | None = None
        """The member that is further than the run under way here, which ends for it."""
        self._claims: dict[DeviceId, tuple[RunId, int]] = {}
        """Members that went on with a run while this laptop was lost: the run, and the steps done there,
        until it is decided whose state goes on."""
        self._follows: tuple[pa.Participation, DeviceId] | None = None
        """The run that goes on without its starter, and the member that is to ask this laptop."""

    # --- as a member ----------------------------------------------------------------------------------------

    def take_over(self, last: pa.Participation) -> None:
        """The part here has ended, and the training goes on without its starter. The node is idle next."""
        plan, me = last.plan, self._context.me
        owner = owner_of(plan)
        run = last.shown.run
        own = None if run is None else run.members[me].progress
        step = 0 if own is None or own.done is None else own.done
        self._stand_in = StandIn(owner, step)
        self.has_handed_back, self._follows = False, None
        if self._context.is_linked(owner.device):  # it was restarted meanwhile
            self._tell_owner()
            return
        left = [member.device for member in plan.members if member.device not in last.gone]
        them = [device for device in left if device == me or self._context.is_linked(device)]
        if them[0] != me:  # that one asks this laptop
            self._follows = last, them[0]
            self._context.clock.call_later(self._context.limits.asked_s, partial(self._check_asked, last))
            return
        self._continuation.spec = RunSpec(
            script="",
            devices=tuple(them[1:]),
            solo=len(them) == 1,
            resume=plan.run,
            opens={member.device: member.opens for member in plan.members if member.opens},
        )
        wait_s = self._context.limits.stand_in_s
        self._continuation.next = Next(plan.run, tuple(them), (me,), (), wait_s, unless_busy=True)

    def on_link(self, news: LinkBack | LinkLost) -> None:
        if isinstance(news, LinkBack):
            if self._stand_in is not None and self._stand_in.owner.device == news.device:
                self._tell_owner()
            return
        self._claims.pop(news.device, None)
        if self._follows is not None and news.device == self._follows[1]:
            last, _ = self._follows
            if self._is_unasked(last):
                self.take_over(last)
                self._continuation.on_idle()

    def _is_unasked(self, last: pa.Participation) -> bool:
        run = self._context.state().run
        return run is not None and run.over and run.plan.run == last.plan.run

    def _check_asked(self, last: pa.Participation) -> None:
        if self._follows is not None and self._follows[0] is last and self._is_unasked(last):
            _, first = self._follows
            self._follows = None
            self._continuation.failed(last.plan.run, _not_asked(last.plan.member(first).name))

    async def recover(self, history: Recorder, *, go_on: bool) -> None:
        """After the node's start: continue a run that was started here and was under way when the node died
        (``go_on``), or tell the user how."""
        await self._recall(history)
        chain = await history.cut_off()
        if not chain or (entry := chain[0]).spec is None or entry.sweep:  # a sweep goes on as a whole
            return
        me, wait_s = self._context.me, self._context.limits.recover_s
        # Without a script, it is another laptop's run: its project and arguments are in that one's records.
        spec = structs.replace(entry.spec, script=entry.source if entry.spec.script else "")
        devices = tuple(dict.fromkeys((me, *entry.device_ids)))
        kept, step = None, 0
        for each in chain:  # the newest may have been lost before its first checkpoint
            folder = self._context.folder(each.run) / run_folder.CHECKPOINTS
            kept = await self._context.files.do(checkpoint_store.newest_by_size, folder)
            if kept is not None:
                entry, step = each, kept.head.moment.step
                break
        following = Next(entry.run, devices, (me,), (), wait_s, spec=spec, from_others=True)
        were_in = frozenset(device for each in chain for device in each.device_ids)
        # From now on another laptop may report that it went on, and have the only checkpoint.
        self.lost = Lost(following, frozenset(each.run for each in chain), were_in, step)
        self.reconsider()
        if kept is None or self.lost is None or not history.is_cut_off_anew:
            return
        if go_on:
            self._go_on(following)
        else:
            self._context.notice(return_problems.could_go_on(entry))

    async def _recall(self, history: Recorder) -> None:
        """Stand in again, after a restart, for a lost starter."""
        stand_in = await history.last_stand_in()
        if stand_in is not None and self._stand_in is None:
            self._stand_in = stand_in
            if self._context.is_linked(stand_in.owner.device):
                self._tell_owner()

    def on_training(self, plan: Plan) -> None:
        """The first step of a run that was started here."""
        self.has_handed_back = False
        if plan.resume is None:
            self._chain, self._were_in = set(), set()
        else:
            self._chain.add(plan.resume.run)
            if self.lost is not None and plan.resume.run in self.lost.runs:
                self._chain |= self.lost.runs
                self._were_in |= self.lost.devices
        self._chain.add(plan.run)
        self._were_in.update(member.device for member in plan.members)
        self._ahead = None
        if self.lost is not None and self.lost.runs <= self._chain:
            self.lost = None
        if plan.owner is not None and plan.resume is not None:
            for run in {plan.resume.run, plan.owner.run}:
                self._context.files.post(note_successor, self._context.runs, run, plan.run)
        # Later: the run's machine is still in the step that emitted this.
        asyncio.get_running_loop().call_soon(self.reconsider)

    def note_step(self, plan: Plan, step: int | None) -> None:
        """``step``: steps done in the run under way here."""
        if self._stand_in is not None and plan.owner == self._stand_in.owner and step is not None:
            self._stand_in.step = step

    def _tell_owner(self) -> None:
        assert self._stand_in is not None
        owner = self._stand_in.owner
        self._context.send(owner.device, ms.TookOver(run=owner.run, step=self._stand_in.step))

    def _hand_back(self, device: DeviceId, run: RunId, goes_on: bool) -> None:
        stand_in, starter = self._stand_in, self._coordinator()
        if stand_in is None or stand_in.owner != RunOwner(device=device, run=run):
            return
        self._stand_in, name = None, self._context.name_of(device)
        if starter is not None and starter.state.plan.owner == stand_in.owner:
            self.has_handed_back = goes_on
            starter.handle(co.GoesOn((name,), elsewhere=True) if goes_on else co.StopWanted(name, 0))
        elif starter is None and self._continuation.cancel():
            self._planner.end(_handed_back(name))

    # --- as the starter -------------------------------------------------------------------------------------

    def on_message(self, device: DeviceId, message: ms.Message) -> bool:
        """False: the message is about something else."""
        match message:
            case ms.TookOver(run=run, step=step):
                self._claims[device] = run, step
                self._decide(device)
                return True
            case ms.TakenBack(run=run, goes_on=goes_on):
                self._hand_back(device, run, goes_on)
                return True
        return False

    def on_end(self, state: co.Coordination, staying: tuple[DeviceId, ...]) -> Next | None:
        """The run that was started here has ended. Returns what follows, if a member is further."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            if isinstance(state.phase, Failed) and state.phase.problem.code == "killed":
                me, others = self._context.me, state.parts.keys() - {self._context.me}
                # Another laptop may go on with it: the trainers here were the last ones of their half.
                wait_s, spec = self._context.limits.recover_s, self._continuation.spec
                run = state.plan.run
                following = Next(run, (me, *others), (me,), (), wait_s, spec=spec, from_others=True)
                runs, were_in = {run}, set(others)
                if run in self._chain:  # otherwise it made no step
                    runs, were_in = self._chain, self._were_in
                self.lost = Lost(following, frozenset(runs), frozenset(were_in), _done(state))
            return None
        run, device, name = ahead
        return Next(run, tuple(dict.fromkeys((*staying, device))), staying, (name,), from_others=True)

    def reconsider(self) -> None:
        """A run began or ended here: it may be time to decide who goes on with one that was lost."""
        for device in tuple(self._claims):
            self._decide(device)

    def _decide(self, device: DeviceId) -> None:
        """Decide whose state goes on. The answer comes later if it depends on a run that is only starting
        here, or has to wait for another run of this user's."""
        run, step = self._claims[device]
        starter, name = self._coordinator(), self._context.name_of(device)
        if starter is None:
            if self._continuation.is_in_a_run():
                return
            if self.lost is not None and run in self.lost.runs and device in self.lost.devices:
                lost, self.lost = self.lost, None
                self._chain, self._were_in = {*lost.runs}, {*lost.devices}
                devices = tuple(dict.fromkeys((*lost.following.devices, device)))
                # A checkpoint that is further is found by asking for that run.
                further = run if step > lost.step else lost.following.run
                self._answer(device)
                self._go_on(replace(lost.following, run=further, devices=devices, back=(name,)))
            elif run in self._chain:
                following = self._continuation.next
                if following is None:  # it was stopped here, or has ended
                    self._answer(device, goes_on=False)
                elif following.from_others and device in self._were_in:
                    self._continuation.add(device, name)
                    self._answer(device)  # the first to report it may not be the one that stands in
            return
        if run not in self._chain or device not in self._were_in:
            return
        part = starter.state.parts.get(device)
        if part is not None and not part.left:
            if part.takes_part:  # otherwise it was lost while the run ended
                del self._claims[device]
            return
        done = _done(starter.state)
        self._answer(device)
        if step > done:
            self._ahead = run, device, name
            starter.handle(co.Broke(_overtaken(name, step, done)))

    def _go_on(self, following: Next) -> None:
        """Resume a run that was lost here; laptops that are missing are added later."""
        for device in following.devices:
            if device != self._context.me:
                self._bring_in(device)
        self._continuation.next = following
        self._continuation.on_idle()

    def _answer(self, device: DeviceId, *, goes_on: bool = True) -> None:
        run, _ = self._claims.pop(device)
        self._context.send(device, ms.TakenBack(run=run, goes_on=goes_on))
        if goes_on:
            self._bring_in(device)


def _done(state: co.Coordination) -> int:
    """Steps done, including those of the runs before."""
    own, resumed = state.tally.last, state.plan.resume
    if own is None or own.done is None:
        return 0 if resumed is None else resumed.moment.step
    return own.done


def _handed_back(name: str) -> Problem:
    return Problem(code="handed-back", what=f"{name} is back, and continues its run itself.")


def _not_asked(name: str) -> Problem:
    return Problem(code="not-asked", what=f"{name} was to go on with it, but did not ask this laptop.")


def _overtaken(name: str, step: int, done: int) -> Problem:
    return Problem(
        code=OVERTAKEN,
        what=f"{name} went on with this run as well while it was away, and is further: {step:,} steps are "
        f"done there, and {done:,} here. The training goes on from there, with this laptop.",
        fix="You need not do anything. The record of this part stays. If files beside the script are "
        "replaced, the log says where the old ones are kept.",
    )
