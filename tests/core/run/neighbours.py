"""Three nodes that lose each other and find each other again, without sockets, files, processes or clocks:
the real ``Returns`` with its ``Succession`` and ``Continuation`` on each, over runs of ``world.py``."""

from __future__ import annotations

import asyncio
import dataclasses
import selectors
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec.structs import replace

from core.project import checkpoint_store
from core.run import abilities
from core.run.context import RunLimits
from core.run.coordinator import state as co
from core.run.participant import state as pa
from core.run.resume import plan as resume_plan
from core.run.returns import HANDLED, Returns
from core.run.stand_in import StandIn
from core.runtime.background import Background
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import trainer_messages
from core.vocabulary.answers import RunEntry
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, ProjectId, RunId
from core.vocabulary.phases import Exit, Training
from core.vocabulary.plan import Moment, Plan, Resumption, RunSpec
from core.vocabulary.progress import Progress
from core.vocabulary.settings import Settings
from core.vocabulary.state import Device, State, apply
from core.vocabulary.traffic import From, LinkBack, LinkLost
from core.vocabulary.versions import installed
from tests.core.cluster.laptops import ANNA, BEN, CLEO, NAMES, hardware, plan_of
from tests.core.run.world import LOST, MANIFEST, Member, World, failing

BUSY = Problem(code="device-busy", what="It is busy.")
VERSIONS = installed()
STOPPED = Exit(reason="stopped", weights_sha256="f" * 64)


class _JumpingSelector(selectors.SelectSelector):
    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and nothing will ever happen"
        self.now_s += timeout
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its time stands still while there is anything to do, and then jumps to the next timer."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def next_s(self) -> float | None:
        """The time until a timer is due; None if there is none."""
        due = [timer.when() for timer in self._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        return max(0.0, min(due) - self.time()) if due else None

    async def settle(self) -> None:
        """Returns once nobody has anything to do before time passes."""
        while self._ready:  # type: ignore[attr-defined]  # noqa: ASYNC110
            await asyncio.sleep(0)


class Run(World):
    """A run among these nodes."""

    def __init__(self, house: House, plan: Plan, falls_back: bool) -> None:
        self.house = house
        self.dead = set[DeviceId]()
        """Nodes that have crashed since it began."""
        self.steps = Counter[DeviceId]()
        house.runs.append(self)
        house.plans[plan.run] = plan
        super().__init__(plan, me=plan.starter)
        self.starter = dataclasses.replace(self.starter, falls_back=falls_back)

    @property
    def run(self) -> RunId:
        return self.starter.plan.run

    @property
    def is_led(self) -> bool:
        return not self.over and self.me not in self.dead

    def takes_part(self, device: DeviceId) -> bool:
        side = self.members.get(device)
        known = side is not None and side.known is not None and side.outputs_taken is None
        return known and device not in self.dead

    def tell(self, told: co.Input) -> None:
        if self.me in self.dead:
            return
        was_over = self.over
        super().tell(told)
        if self.over and not was_over:
            self.house.loop.call_soon(self.house.nodes[self.me].end_work)

    def tell_member(self, device: DeviceId, told: pa.Input) -> None:
        side = self.members[device]
        if device in self.dead or side.outputs_taken is not None:
            return
        super().tell_member(device, told)
        node = self.house.nodes[device]
        if self.members[device].outputs_taken is not None:
            assert side.known is not None
            node.returns.on_part_over(side.known)
            node.end_work()

    def show(self, event: ev.Event) -> None:
        super().show(event)
        self.house.nodes[self.me].show(event)

    def show_member(self, device: DeviceId, event: ev.Event) -> None:
        super().show_member(device, event)
        self.house.nodes[device].show(event)

    def deliver_to_member(self, device: DeviceId) -> None:
        message, node = self.to_member[device][0], self.house.nodes[device]
        if device in self.dead or (isinstance(message, ms.Prepare) and device == self.me and self.over):
            self.to_member[device].popleft()
        elif isinstance(message, ms.Prepare) and device != self.me and node.busy:
            self.to_member[device].popleft()
            self.tell(From(device, ms.Declined(run=self.run, problem=BUSY)))
        else:
            super().deliver_to_member(device)

    # --- trainers -----------------------------------------------------------------------------------------

    def trainer_goes_on(self, device: DeviceId, task: str) -> None:
        """It reports whatever comes next."""
        known = self.members[device].known
        assert known is not None
        match known.doing[task]:
            case "starting":
                self.trainer_says(device, task, trainer_messages.Booted(seconds=5.0, devices=()))
                self.trainer_says(device, task, trainer_messages.Connecting())
            case "meeting":
                self.trainer_says(device, task, trainer_messages.Met(strategy="managed", replicas=1))
            case _:
                self._step(device, task)

    def _step(self, device: DeviceId, task: str) -> None:
        self.steps[device] += 1
        resume = self.starter.plan.resume
        done = (0 if resume is None else resume.moment.step) + self.steps[device]
        progress = Progress(
            at_s=float(done),
            epoch=0,
            epochs=9,
            step=self.steps[device],
            batch=done,
            done=done,
            samples_s=64.0,
        )
        self.trainer_says(device, task, trainer_messages.Progressed(progress=progress))
        self.house.nodes[device].kept[self.run] = done
        self.trainer_says(device, task, trainer_messages.Kept())

    def trainer_obeys(self, device: DeviceId, task: str) -> None:
        force = self.members[device].trainers[task]
        self.trainer_ends(device, task, failing("killed") if force == 2 else STOPPED)

    @property
    def living(self) -> list[tuple[DeviceId, str]]:
        return [(device, task) for device, side in self.members.items() for task in side.trainers]

    def lose(self, device: DeviceId) -> None:
        """The link between the starter and this member."""
        self.lost.add(device)
        self.to_member[device].clear()
        self.to_starter[device].clear()
        self.tell(LinkLost(device, LOST))
        if self.takes_part(device):
            self.tell_member(device, LinkLost(self.me, LOST))

    def mend(self, device: DeviceId) -> None:
        self.lost.discard(device)
        if self.is_led:
            self.tell(LinkBack(device))
        if self.takes_part(device):
            self.tell_member(device, LinkBack(self.me))

    def crash(self, device: DeviceId) -> None:
        self.dead.add(device)
        if (side := self.members.get(device)) is not None:
            self.members[device] = Member(known=side.known, shown=side.shown, outputs_taken=False)
        for queue in (self.to_member[device], self.to_starter[device]):
            queue.clear()
        if device == self.me:
            self.jobs.clear()
            self.waits.clear()


class Node:
    """Also its runs' context, planner and clock, as far as ``Returns`` uses them."""

    def __init__(self, house: House, device: DeviceId) -> None:
        self.house, self.me = house, device
        self.my_name = NAMES[device]
        self.limits, self.runs = RunLimits(), Path("/runs")
        self.clock = self.files = self.transfers = self
        self.background = Background(house.on_crash)
        self.under_way = self.is_dead = self.is_busy = False
        self.kept: dict[RunId, int] = {}
        """Steps of the newest checkpoint here, by run."""
        self.successors: dict[RunId, RunId] = {}
        self.notices: list[str] = []
        self.cut_off: RunEntry | None = None
        """The run that was under way here when the node crashed."""
        self.why_ended: Problem | None = None
        """Why the planning under way is to end."""
        me = ev.NodeStarted(
            device=device,
            name=self.my_name,
            addresses=(),
            versions=VERSIONS,
            hardware=hardware(),
            settings=Settings(name=self.my_name),
            home="/",
        )
        self._state = apply(State(), me)
        for other in NAMES.keys() - {device}:
            self._state = apply(
                self._state, ev.DevicePaired(device=other, name=NAMES[other], policy="always")
            )
        self.returns = Returns(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            coordinator=self.coordinator,
            has_checkpoint=self.has_checkpoint,
            is_in_a_run=lambda: self.is_in_a_run,
            start=self.start,
            load=self.load,
            on_over=self.end_work,
        )

    # --- its runs ------------------------------------------------------------------------------------------

    @property
    def led(self) -> Run | None:
        return next((run for run in self.house.runs if run.me == self.me and run.is_led), None)

    @property
    def joined(self) -> Run | None:
        return next((run for run in self.house.runs if run.takes_part(self.me)), None)

    @property
    def is_in_a_run(self) -> bool:
        return not self.is_dead and (self.under_way or self.led is not None or self.joined is not None)

    @property
    def busy(self) -> bool:
        return self.is_in_a_run or self.returns.continuation.next is not None

    def coordinator(self) -> Any:
        if (run := self.led) is None or self.is_dead:
            return None
        return SimpleNamespace(state=run.starter, handle=run.tell, remark=lambda words: None)

    def has_checkpoint(self) -> bool:
        run = self.joined
        known = None if run is None else run.members[self.me].known
        return known is not None and known.has_checkpoint

    def show(self, event: ev.Event) -> None:
        self.emit(event)
        if isinstance(event.phase if isinstance(event, ev.RunPhaseChanged) else event, HANDLED):
            self.returns.on_event(event)  # type: ignore[arg-type]

    def end_work(self) -> None:
        if not self.is_in_a_run and not self.is_dead:
            self.returns.on_idle()

    async def load(self, devices: Iterable[DeviceId]) -> None:
        await asyncio.sleep(1.0)

    async def start(self, spec: RunSpec, back: tuple[str, ...], *, from_others: bool) -> RunId:
        assert not self.is_in_a_run and spec.resume is not None
        self.under_way, self.why_ended = True, None
        try:
            await asyncio.sleep(0.1)
            if self.why_ended is not None:
                raise TandemError.of(self.why_ended)
            for device in spec.devices:
                known = self.known(device)
                assert known is not None
                if (why := abilities.why_not(known, goes_on=True)) is not None:
                    raise why
            plan = self._resumed(spec, spec.resume, back)
        finally:
            self.under_way = False
            self.house.loop.call_soon(self.end_work)
        assert not self.is_in_a_run
        self.returns.on_start(spec, goes_on=True)
        Run(self.house, plan, falls_back=True)
        return plan.run

    def _resumed(self, spec: RunSpec, run: RunId, back: tuple[str, ...]) -> Plan:
        old, newest = self.house.plans[run], -1
        for device in (self.me, *(member.device for member in old.members)):
            if device == self.me or self.is_linked(device):
                node = self.house.nodes[device]
                newest = max(newest, node.kept.get(node.newest_of(run), -1))
        if newest < 0:
            raise TandemError(code="no-checkpoint", what="Nobody has one.")
        resume = Resumption(
            run=run,
            checkpoint=ProjectId("c" * 64),
            moment=Moment(step=newest),
            back=back,
            owner=resume_plan.stood_in_for(old, self.me),
        )
        made = plan_of((self.me, *spec.devices), starter=self.me, project=MANIFEST.digest)
        self.house.number += 1
        return replace(made, run=RunId(f"run-{self.house.number}"), resume=resume)

    def newest_of(self, run: RunId) -> RunId:
        while run in self.successors:
            run = self.successors[run]
        return run

    # --- what Returns uses of a node -----------------------------------------------------------------------

    def state(self) -> State:
        return self._state

    def known(self, device: DeviceId) -> Device | None:
        return self._state.devices.get(device)

    def is_linked(self, device: DeviceId) -> bool:
        known = self.known(device)
        return known is not None and known.linked

    def name_of(self, device: DeviceId) -> str:
        return NAMES[device]

    def notice(self, problem: Problem) -> None:
        self.notices.append(problem.what)

    def emit(self, event: ev.Event) -> None:
        self._state = apply(self._state, event)
        if isinstance(event, ev.LinkUp | ev.LinkDown | ev.BusyChanged):
            self.returns.on_news()

    def send(self, device: DeviceId, message: ms.Message) -> bool:
        if not self.is_linked(device) or self.is_dead:
            return False
        self.house.loop.call_soon(self.house.arrive, self, self.house.nodes[device], message)
        return True

    def folder(self, run: RunId) -> Path:
        return self.runs / run

    def time(self) -> float:
        return self.house.loop.time()

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        def fire() -> None:
            if not self.is_dead:
                callback()

        return self.house.loop.call_later(delay, fire)

    async def do(self, work: Callable[..., object], *given: Any) -> object:
        assert work is checkpoint_store.newest_by_size
        await asyncio.sleep(0)
        step = self.kept.get(RunId(given[0].parent.name))
        return step and SimpleNamespace(head=SimpleNamespace(moment=SimpleNamespace(step=step)))

    def post(self, work: Callable[..., object], runs: Path, run: RunId, successor: RunId) -> None:
        self.successors[run] = successor

    def offer(self, *given: object) -> Callable[[], None]:
        return lambda: None

    def end(self, problem: Problem) -> None:
        if self.under_way:
            self.why_ended = problem

    async def invite(self, spec: RunSpec, device: DeviceId, plan: Plan) -> Any:
        await asyncio.sleep(0)
        self.house.number += 1
        asked = replace(
            plan_of((self.me, device), starter=self.me, project=MANIFEST.digest),
            run=RunId(f"invitation-{self.house.number}"),
        )
        project = SimpleNamespace(listing=None, data=(), manifest=MANIFEST, folder="/")
        request = ms.Prepare(plan=asked, manifest=MANIFEST, source="")
        return SimpleNamespace(plan=asked, project=project, request=request)


class House:
    """Three nodes, each paired and linked with each. ``train`` begins a run of the first with the others."""

    def __init__(self, loop: JumpingLoop) -> None:
        self.loop = loop
        self.number = 0
        self.runs: list[Run] = []
        self.plans: dict[RunId, Plan] = {}
        self.crashes: list[BaseException] = []
        self.broken: list[tuple[DeviceId, DeviceId]] = []
        self.nodes = {device: Node(self, device) for device in (ANNA, BEN, CLEO)}
        for one, other in self.pairs:
            self._up(one, other)

    pairs = ((ANNA, BEN), (ANNA, CLEO), (BEN, CLEO))

    def on_crash(self, name: str, error: BaseException) -> None:
        self.crashes.append(error)

    def train(self, *devices: DeviceId) -> Run:
        plan = plan_of(devices, project=MANIFEST.digest)
        others = tuple(device for device in devices if device != ANNA)
        self.nodes[ANNA].returns.on_start(RunSpec(script="train.py", devices=others), goes_on=False)
        return Run(self, plan, falls_back=False)

    def arrive(self, sender: Node, node: Node, message: ms.Message) -> None:
        if not sender.is_linked(node.me) or node.is_dead or sender.is_dead:
            return
        if isinstance(message, ms.Prepare):  # an invitation: its user has allowed it before
            refusal = ms.Declined(run=message.plan.run, problem=BUSY)
            node.send(sender.me, refusal if node.busy else ms.Prepared(run=message.plan.run, ports={}))
        else:
            node.returns.on_message(sender.me, message)

    # --- links and crashes ---------------------------------------------------------------------------------

    def _up(self, one: DeviceId, other: DeviceId) -> None:
        for here, there in ((one, other), (other, one)):
            up = ev.LinkUp(
                device=there,
                name=NAMES[there],
                address="192.168.1.1:1",
                versions=VERSIONS,
                hardware=hardware(),
                busy=self.nodes[there].busy,
            )
            self.nodes[here].emit(up)

    def lose(self, one: DeviceId, other: DeviceId) -> None:
        self.broken.append((one, other))
        for here, there in ((one, other), (other, one)):
            node = self.nodes[here]
            if not node.is_dead:
                node.emit(ev.LinkDown(device=there, problem=LOST))
                node.returns.on_link(LinkLost(there, LOST))
        for run in tuple(self.runs):
            for here, there in ((one, other), (other, one)):
                if run.me == here and there in run.members:
                    run.lose(there)

    def mend(self, one: DeviceId, other: DeviceId) -> None:
        self.broken.remove((one, other))
        self._up(one, other)
        for run in tuple(self.runs):
            for here, there in ((one, other), (other, one)):
                if run.me == here and there in run.members:
                    run.mend(there)
        for here, there in ((one, other), (other, one)):
            self.nodes[here].returns.on_link(LinkBack(there))

    def crash(self, device: DeviceId, *, go_on: bool) -> None:
        """A node dies with its trainers, and is started again. It is linked with nobody then."""
        before, led = self.nodes[device], self.nodes[device].led
        spec = before.returns.continuation.spec
        entry = None if led is None or spec is None else _entry(led.starter.plan, spec)
        stands_in = before.returns._succession._stand_in
        if led is not None and (owner := led.starter.plan.owner) is not None:  # its record has no end
            stands_in = StandIn(owner)
        before.is_dead = True
        before.returns.close()
        self.loop.create_task(before.background.cancel())
        for run in self.runs:
            run.crash(device)
        for one, other in self.pairs:
            if device in (one, other) and (one, other) not in self.broken:
                self.lose(one, other)
        after = self.nodes[device] = Node(self, device)
        after.kept, after.successors = before.kept, before.successors

        async def last_stand_in() -> object:
            return stands_in

        own = [run.run for run in self.runs if device in run.members]
        was = before.cut_off if before.cut_off is not None and own[-1:] == [before.cut_off.run] else None
        found = after.cut_off = entry or was
        chain = [] if found is None else [found]
        while chain and (resumed := self.plans[chain[-1].run].resume) is not None:
            chain.append(_entry(self.plans[resumed.run], None))

        async def cut_off() -> list[RunEntry]:
            return chain

        history: Any = SimpleNamespace(
            cut_off=cut_off, is_cut_off_anew=entry is not None, last_stand_in=last_stand_in
        )
        after.background.start("recover", after.returns.recover(history, go_on=go_on))

    def tell_who_is_busy(self) -> None:
        for device, node in self.nodes.items():
            if node.busy != node.is_busy:
                node.is_busy = node.busy
                for other in self.nodes.values():
                    if other.is_linked(device):
                        told = partial(other.emit, ev.BusyChanged(device=device, busy=node.busy))
                        self.loop.call_soon(told)

    def close(self) -> None:
        for node in self.nodes.values():
            node.returns.close()


def _entry(plan: Plan, spec: RunSpec | None) -> RunEntry:
    devices = tuple(member.device for member in plan.members)
    return RunEntry(
        run=plan.run,
        started_s=0.0,
        script="train.py",
        source="/train.py",
        devices=tuple(NAMES[device] for device in devices),
        device_ids=devices,
        spec=spec,
        phase=Training(),
    )
