"""A whole run without sockets, files, processes or clocks: the machines of the starter and of each member,
and the links between them. A test decides the order of events."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from core.run.coordinator import machine as coordinator
from core.run.coordinator import state as co
from core.run.participant import machine as participant
from core.run.participant import state as pa
from core.runtime.timers import CancelTimer, SetTimer, TimerFired
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary import trainer_messages
from core.vocabulary.errors import Problem
from core.vocabulary.events import Shown
from core.vocabulary.ids import DeviceId
from core.vocabulary.manifest import Manifest, ProjectFile, manifest_of
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Exit, Phase, ended
from core.vocabulary.plan import Plan
from core.vocabulary.progress import Progress
from core.vocabulary.state import State, apply
from core.vocabulary.traffic import From, LinkAway, LinkBack, LinkLost, Send
from tests.core.cluster.laptops import ANNA, BEN, plan_of

LOST = Problem(code="link-closed", what="The link closed.")
CLOSED = Problem(code="closed", what="Tandem was closed there.")
MANIFEST = manifest_of("train.py", [ProjectFile(path="train.py", size=3, sha256="a" * 64)])
OUTPUTS = manifest_of("", [ProjectFile(path="model.keras", size=3, sha256="b" * 64)])
FINISHED = Exit(reason="finished", weights_sha256="f" * 64)


def failing(reason: str, what: str = "it broke") -> Exit:
    return Exit(reason=reason, problem=Problem(code=reason, what=what))  # type: ignore[arg-type]


def progress(step: int = 0) -> trainer_messages.Progressed:
    return trainer_messages.Progressed(
        progress=Progress(at_s=float(step), epoch=0, epochs=1, step=step, batch=step, samples_s=64.0)
    )


@dataclass
class Member:
    """One member: its machine, its driver's requests, its trainers."""

    known: pa.Participation | None = None
    jobs: deque[pa.Effect] = field(default_factory=deque)
    trainers: dict[str, int] = field(default_factory=dict)
    """Running tasks, with the highest stop force requested of each (-1: none)."""
    shown: list[ev.Event] = field(default_factory=list)
    waits: dict[str, float] = field(default_factory=dict)
    orders: list[trainer_messages.Order] = field(default_factory=list)
    """Departures reported to its trainers."""
    outputs_taken: bool | None = None
    looked: int = 0
    """How often it was asked whether trainers are stopped."""


class World:
    """The plan's members; messages travel in ordered queues, like a link's.

    Messages over a cut link wait until it is restored; over a lost one nothing arrives.
    """

    def __init__(
        self,
        plan: Plan | None = None,
        *,
        me: DeviceId = ANNA,
        manifest: Manifest = MANIFEST,
        allowed: bool = True,
    ) -> None:
        plan = plan or plan_of(project=manifest.digest)
        self.me = me
        self.allowed = allowed
        self.now_s = 0.0
        request = ms.Prepare(plan=plan, manifest=manifest, source="/home/anna/project")
        self.starter = co.coordinate(me, request, 0.0)
        self.members = {member.device: Member() for member in plan.members}
        self.to_member: dict[DeviceId, deque[Message]] = defaultdict(deque)
        self.to_starter: dict[DeviceId, deque[Message]] = defaultdict(deque)
        self.jobs: deque[co.Effect] = deque()
        self.waits: dict[str, float] = {}
        self.events: list[ev.Event] = []
        self.state = State()
        self.screens = {device: State() for device in self.members}
        self.cut: set[DeviceId] = set()
        self.lost: set[DeviceId] = set()
        self.over = False
        self.taken_from: list[DeviceId] = []
        """Members whose outputs the starter fetched."""
        self.fetched: list[tuple[DeviceId, DeviceId]] = []
        """Members that fetched the files, and from whom."""
        self.given: list[tuple[DeviceId, DeviceId]] = []
        """Members that were told to give files on, and to whom."""
        self.tell(co.Begun())

    # --- what one may do ---------------------

    def tell(self, told: co.Input) -> None:
        self.starter, effects = coordinator.step(self.starter, told, self.now_s)
        for effect in effects:
            assert not self.over, "an effect after the last one"
            match effect:
                case Send(device, message):
                    if device not in self.lost:
                        self.to_member[device].append(message)
                case event if isinstance(event, ev.MirroredEvent):
                    self.state = apply(self.state, event)  # raises for an event that does not fit
                    self.show(event)
                case SetTimer(wait, seconds):
                    self.waits[wait] = seconds
                case CancelTimer(wait):
                    del self.waits[wait]
                case co.Finish():
                    self.over = True
                case _:
                    self.jobs.append(effect)

    def tell_member(self, device: DeviceId, told: pa.Input) -> None:
        side = self.members[device]
        assert side.known is not None
        side.known, effects = participant.step(side.known, told, self.now_s)
        for effect in effects:
            assert side.outputs_taken is None, "an effect after the last one"
            match effect:
                case Send(to, message):
                    assert to == self.me
                    if device not in self.lost:
                        self.to_starter[device].append(message)
                case event if isinstance(event, Shown):
                    self.show_member(device, event)
                    if not isinstance(event, ev.ConsentAsked | ev.ConsentSettled):
                        assert device != self.me, "the starter's screen is the coordinator's"
                        self.screens[device] = apply(self.screens[device], event)
                case pa.StartTrainers(plan=plan):
                    side.trainers = {task.name: -1 for task in plan.tasks_of(device)}
                case pa.StopTrainers(force):
                    side.trainers = {task: max(force, before) for task, before in side.trainers.items()}
                case pa.OrderTrainers(order):
                    side.orders.append(order)
                case SetTimer(wait, seconds):
                    side.waits[wait] = seconds
                case CancelTimer(wait):
                    del side.waits[wait]
                case pa.CheckTrainers():
                    side.looked += 1
                case pa.Leave(taken):
                    side.outputs_taken = taken
                case _:
                    side.jobs.append(effect)

    def show(self, event: ev.Event) -> None:
        self.events.append(event)

    def show_member(self, device: DeviceId, event: ev.Event) -> None:
        self.members[device].shown.append(event)

    def deliver_to_member(self, device: DeviceId) -> None:
        message = self.to_member[device].popleft()
        side = self.members[device]
        if isinstance(message, ms.Prepare):
            assert side.known is None, "it is said once"
            side.known = pa.Participation(device, message.plan, message, "Anna's")
            self.tell_member(device, pa.Checked(allowed=self.allowed))
        elif side.known is not None:
            self.tell_member(device, From(self.me, message))

    def deliver_to_starter(self, device: DeviceId) -> None:
        self.tell(From(device, self.to_starter[device].popleft()))

    def do_job(self) -> None:
        """The starter's driver carries out its requests."""
        job = self.jobs.popleft()
        match job:
            case co.TakeOutputs(device=device):
                self.taken_from.append(device)
                self.tell(co.OutputsCame())
                self.tell(co.OutputsStored(("model.keras",)))

    def do_job_of(self, device: DeviceId) -> None:
        match self.members[device].jobs.popleft():
            case pa.ListMissing():
                self.tell_member(device, pa.Listed(0 if device == self.me else 3))
            case pa.FetchFrom(giver=giver):
                assert giver in {*self.members, self.me} - {device}
                self.fetched.append((device, giver))
                self.tell_member(device, pa.PiecesCame(1, 3))
                self.tell_member(device, pa.FilesHere())
            case pa.GiveTo(device=to):
                assert to in self.members and to not in (device, self.me)
                self.given.append((device, to))
            case pa.MakeReady():
                tasks = self.starter.plan.tasks_of(device)
                made = {} if self.starter.plan.solo else {task.name: task.name.encode() for task in tasks}
                self.tell_member(device, pa.MadeReady({task.name: task.port for task in tasks}, made))
            case pa.FindOutputs():
                self.tell_member(device, pa.OutputsFound(OUTPUTS))
            case _:
                pass

    def fire(self, wait: str) -> None:
        self.now_s += self.waits.pop(wait)
        self.tell(TimerFired(wait))  # type: ignore[arg-type]

    def fire_member(self, device: DeviceId, wait: str) -> None:
        self.now_s += self.members[device].waits.pop(wait)
        self.tell_member(device, TimerFired(wait))  # type: ignore[arg-type]

    def cut_link(self, device: DeviceId, why: Problem = LOST) -> None:
        """Nothing arrives any more; both sides notice."""
        assert device != self.me
        self.cut.add(device)
        self.tell(LinkAway(device, why))
        if self.members[device].known is not None:
            self.tell_member(device, LinkAway(self.me, why))

    def restore_link(self, device: DeviceId) -> None:
        """Both return, and messages sent meanwhile arrive."""
        self.cut.discard(device)
        self.tell(LinkBack(device))
        if self.members[device].known is not None:
            self.tell_member(device, LinkBack(self.me))

    def lose_link(self, device: DeviceId, why: Problem = LOST) -> None:
        """The link is over for good; both sides notice."""
        assert device != self.me
        self.lost.add(device)
        self.cut.discard(device)
        self.to_member[device].clear()
        self.to_starter[device].clear()
        self.tell(LinkLost(device, why))
        if self.members[device].known is not None:
            self.tell_member(device, LinkLost(self.me, why))

    def trainer_says(self, device: DeviceId, task: str, report: trainer_messages.Report) -> None:
        self.tell_member(device, pa.TrainerReported(task, report))

    def trainer_ends(self, device: DeviceId, task: str, end: Exit) -> None:
        del self.members[device].trainers[task]
        self.tell_member(device, pa.TrainerEnded(task, end))

    def end_trainer(self, device: DeviceId, task: str, end: Exit) -> None:
        """It ends, with all consequences."""
        self.trainer_ends(device, task, end)
        self.settle()

    def press_stop(self, force: int = 0, *, by: str = "Anna's") -> None:
        """Somebody presses Stop at the starter, with all consequences."""
        self.tell(co.StopWanted(by, force))
        self.settle()

    # --- all that can happen by itself ---------------------

    def settle(self) -> None:
        """Deliver and do everything that needs neither time nor a trainer nor a person."""
        while todo := self.possible():
            todo[0]()

    def possible(self) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = []
        for device, side in self.members.items():
            if self.to_member[device] and device not in self.cut:
                found.append(lambda device=device: self.deliver_to_member(device))  # type: ignore[misc]
            if self.to_starter[device] and device not in self.cut:
                found.append(lambda device=device: self.deliver_to_starter(device))  # type: ignore[misc]
            if side.jobs:
                found.append(lambda device=device: self.do_job_of(device))  # type: ignore[misc]
        if self.jobs:
            found.append(self.do_job)
        return found

    def start_training(self) -> None:
        """Everybody is ready, all trainers have connected and made a step."""
        self.settle()
        self.each_trainer_says(trainer_messages.Booted(seconds=5.0, devices=()))
        self.each_trainer_says(trainer_messages.Connecting())
        self.each_trainer_says(trainer_messages.Met(strategy="MirroredStrategy", replicas=2))
        self.each_trainer_says(progress())
        self.now_s += 1.0

    def each_trainer_says(self, report: trainer_messages.Report) -> None:
        for device, side in self.members.items():
            for task in tuple(side.trainers):
                self.trainer_says(device, task, report)
        self.settle()

    def each_trainer_ends(self, end: Exit = FINISHED) -> None:
        for device, side in self.members.items():
            for task in tuple(side.trainers):
                self.trainer_ends(device, task, end)
        self.settle()

    # --- what is asked ---------------------

    @property
    def phase(self) -> Phase:
        return self.starter.phase

    def last_phases(self, events: list[ev.Event] | None = None) -> list[Phase]:
        """Every last phase that was shown: there should be one."""
        return [
            event.phase
            for event in (self.events if events is None else events)
            if isinstance(event, ev.RunPhaseChanged) and ended(event.phase)
        ]

    def said(self) -> str:
        return "\n".join(event.lines.text for event in self.events if isinstance(event, ev.MemberLogged))


def two() -> World:
    return World()


__all__ = ["ANNA", "BEN", "FINISHED", "World", "failing", "progress", "two"]
