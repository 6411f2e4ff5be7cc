"""A run whose starter's laptop was lost: another member stands in for it, and hands the training back when
the starter is there again. On the core loop.

The members that are left stop at the end of a step (``core.run.participant.ending``). The first of them in
the plan resumes the run with those that it is linked with, and tells the starter when it returns. The starter
alone decides which state goes on: its own, if it went on as well and is as far; otherwise the member's, from
whose checkpoint it resumes the run as it would any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from core.run.context import RunContext
from core.run.continuation import Continuation, Next
from core.run.coordinator import state as co
from core.run.coordinator.driver import CoordinatorDriver
from core.run.participant import state as pa
from core.run.planner import Planner
from core.run.recorder import Recorder
from core.run.resume.plan import owner_of
from core.run.resume.serve import note_successor
from core.run.stand_in import Standing
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import OVERTAKEN, Problem
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.plan import Plan, RunOwner, RunSpec
from core.vocabulary.state import State


class Succession:
    """Both sides of it on this node."""

    def __init__(
        self,
        context: RunContext,
        planner: Planner,
        continuation: Continuation,
        *,
        state: Callable[[], State],
        coordinator: Callable[[], CoordinatorDriver | None],
        go_on: Callable[[Next], None],
    ) -> None:
        """``go_on``: resume the run that a crash of this node cut off."""
        self._context = context
        self._planner = planner
        self._continuation = continuation
        self._state = state
        self._coordinator = coordinator
        self._go_on = go_on
        self._standing: Standing | None = None
        self._has_handed_back = False
        """The run under way here ends only for that."""
        self.lost: Next | None = None
        """The run that a crash of this node cut off, to go on with should a member have done so."""
        self._chain: set[RunId] = set()
        """The run under way that was started here, and those that it resumes."""
        self._were_in: set[DeviceId] = set()
        """The laptops that were in one of these.

        Security invariant: nobody else ends the run, or gets into it, by claiming to have gone on with it.
        """
        self._ahead: tuple[RunId, DeviceId, str] | None = None
        """The member that is further than the run under way here, which ends for it."""

    # --- as a member ----------------------------------------------------------------------------------------

    def take_over(self, last: pa.Participation) -> None:
        """The part here has ended, and the training goes on without its starter. The node is idle next."""
        plan, me = last.plan, self._context.me
        owner = owner_of(plan)
        run = last.shown.run
        own = None if run is None else run.members[me].progress
        step = 0 if own is None or own.done is None else own.done
        self._standing = Standing(owner, step)
        self._has_handed_back = False
        if self._is_linked(owner.device):  # it was restarted meanwhile
            self._tell_owner()
            return
        left = [member.device for member in plan.members if member.device not in last.gone]
        them = [device for device in left if device == me or self._is_linked(device)]
        if them[0] != me:
            return  # that one asks this laptop
        self._continuation.spec = RunSpec(
            script="",
            devices=tuple(them[1:]),
            solo=len(them) == 1,
            resume=plan.run,
            opens={member.device: member.opens for member in plan.members if member.opens},
        )
        self._continuation.next = Next(plan.run, tuple(them), (me,), (), unless_busy=True)

    async def recall(self, history: Recorder) -> None:
        """After the node's start: what was kept here for a lost starter still is."""
        standing = await history.last_standing()
        if standing is not None and self._standing is None:
            self._standing = standing
            if self._is_linked(standing.owner.device):
                self._tell_owner()

    def on_training(self, plan: Plan) -> None:
        """The first step of a run that was started here."""
        self._has_handed_back = False
        if plan.resume is None:
            self._chain, self._were_in = set(), set()
        else:
            self._chain.add(plan.resume.run)
            if self.lost is not None and self.lost.run == plan.resume.run:
                self._were_in.update(self.lost.devices)
        self._chain.add(plan.run)
        self._were_in.update(member.device for member in plan.members)
        self._ahead = self.lost = None
        if plan.owner is not None and plan.resume is not None:
            for run in {plan.resume.run, plan.owner.run}:
                self._context.files.post(note_successor, self._context.runs, run, plan.run)

    def note_step(self, plan: Plan, step: int | None) -> None:
        """``step``: steps done in the run under way here."""
        if self._standing is not None and plan.owner == self._standing.owner and step is not None:
            self._standing.step = step

    def on_link_up(self, device: DeviceId) -> None:
        if self._standing is not None and self._standing.owner.device == device:
            self._tell_owner()

    def _tell_owner(self) -> None:
        assert self._standing is not None
        owner = self._standing.owner
        self._context.send(owner.device, ms.TookOver(run=owner.run, step=self._standing.step))

    def _hand_back(self, device: DeviceId, run: RunId) -> None:
        standing, starter = self._standing, self._coordinator()
        if standing is None or standing.owner != RunOwner(device=device, run=run):
            return
        self._standing, name = None, self._name(device)
        if starter is not None and starter.state.plan.owner == standing.owner:
            self._has_handed_back = True
            starter.handle(co.GoesOn((name,), elsewhere=True))
        elif starter is None and self._continuation.end():
            self._planner.end(_handed_back(name))

    @property
    def has_handed_back(self) -> bool:
        """Whether the run that ended here goes on elsewhere."""
        return self._has_handed_back

    # --- as the starter -------------------------------------------------------------------------------------

    def on_message(self, device: DeviceId, message: ms.Message) -> bool:
        """False: the message is about something else."""
        match message:
            case ms.TookOver(run=run, step=step):
                self._on_taken_over(device, run, step)
                return True
            case ms.TakenBack(run=run):
                self._hand_back(device, run)
                return True
        return False

    def on_end(self, staying: tuple[DeviceId, ...]) -> Next | None:
        """The run that was started here has ended. Returns what follows, if a member is further."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return None
        run, device, name = ahead
        return Next(run, tuple(dict.fromkeys((*staying, device))), staying, (name,))

    def _on_taken_over(self, device: DeviceId, run: RunId, step: int) -> None:
        starter, name = self._coordinator(), self._name(device)
        if starter is None:
            if self.lost is None or self.lost.run != run or device not in self.lost.devices:
                if run in self._chain:  # it was stopped here, or has ended
                    self._answer(device, run)
                return
            lost, self.lost = self.lost, None
            self._chain, self._were_in = {run}, set(lost.devices)
            self._answer(device, run)
            self._go_on(replace(lost, back=(name,)))
            return
        part = starter.state.parts.get(device)
        if run not in self._chain or device not in self._were_in or (part is not None and not part.left):
            return
        own, resumed = starter.state.tally.last, starter.state.plan.resume
        done = 0 if resumed is None else resumed.moment.step
        done = done if own is None or own.done is None else own.done
        self._answer(device, run)
        if step > done:
            self._ahead = run, device, name
            starter.handle(co.Broke(_overtaken(name, step, done)))

    def _answer(self, device: DeviceId, run: RunId) -> None:
        self._context.send(device, ms.TakenBack(run=run))

    def _name(self, device: DeviceId) -> str:
        known = self._state().devices.get(device)
        return known.shown_name if known is not None else ""

    def _is_linked(self, device: DeviceId) -> bool:
        known = self._state().devices.get(device)
        return known is not None and known.linked


def _handed_back(name: str) -> Problem:
    return Problem(code="handed-back", what=f"{name} is there again, and goes on with its run itself.")


def _overtaken(name: str, step: int, done: int) -> Problem:
    return Problem(
        code=OVERTAKEN,
        what=f"{name} went on with this run as well while it was away, and is further: {step:,} steps are "
        f"done there, and {done:,} here. The training goes on from there, with this laptop.",
        fix="Nothing is to be done. What this part of it recorded and wrote stays in its own folder.",
    )
