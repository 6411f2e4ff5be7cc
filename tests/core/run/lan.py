"""Nodes that run scripts without a network: real files and machines, links in memory, fake trainers."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from msgspec import structs

from core.home.certificate import build, device_id
from core.home.home import Home
from core.home.trust import TrustedPeer, TrustStore, add, set_policy
from core.home.trust_file import SavedTrust
from core.link.budgets import kind_of
from core.link.questions import Questions
from core.project import checkpoint_store
from core.run.context import RunLimits
from core.run.runs import NodeRuns
from core.vocabulary import events as ev
from core.vocabulary import trainer_messages, wire
from core.vocabulary.errors import Problem
from core.vocabulary.ids import DeviceId
from core.vocabulary.peer_messages import Message
from core.vocabulary.phases import Exit, Phase, ended
from core.vocabulary.plan import Moment, RunSpec
from core.vocabulary.progress import LogLines
from core.vocabulary.readings import Hardware
from core.vocabulary.settings import Settings
from core.vocabulary.state import State, apply
from core.vocabulary.traffic import LinkAway, LinkBack, LinkLost
from core.vocabulary.versions import installed
from core.walls.levels import Level
from tests.core.certificates import device_key
from tests.core.run.lan_files import LanFiles
from tests.core.run.world import FINISHED, failing, progress

PATIENCE_S = 60.0
LOST = Problem(code="link-closed", what="The link closed.")
CLOSED = Problem(code="closed", what="Tandem was closed there.")


@dataclass(order=True)
class _Due:
    at_s: float
    number: int
    callback: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class HandClock:
    """Time stands still until a test moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._numbers = count()
        self._due: list[_Due] = []

    def time(self) -> float:
        return self.now_s

    def call_later(self, delay: float, callback: Callable[[], None], /) -> _Due:
        if delay == 0.0:
            asyncio.get_running_loop().call_soon(callback)
            return _Due(self.now_s, -1, callback)
        due = _Due(self.now_s + delay, next(self._numbers), callback)
        heapq.heappush(self._due, due)
        return due

    @property
    def waiting(self) -> list[_Due]:
        return [due for due in self._due if not due.cancelled]

    def advance(self, seconds: float) -> None:
        until_s = self.now_s + seconds
        while self._due and self._due[0].at_s <= until_s:
            due = heapq.heappop(self._due)
            self.now_s = due.at_s
            if not due.cancelled:
                due.callback()
        self.now_s = until_s


class FakeTrainer:
    """Controlled by the test; ends immediately when asked to, unless ``stubborn``."""

    stubborn = False

    def __init__(
        self,
        train: trainer_messages.Train,
        *,
        log_path: Path,
        on_report: Callable[[trainer_messages.Report], None],
        on_output: Callable[[LogLines], None],
        on_exit: Callable[[Exit], None],
    ) -> None:
        self.train = train
        self.log_path = log_path
        self.say = on_report
        self.write = on_output
        self._on_exit = on_exit
        self.started = False
        self.over = False
        self.is_stopped = False
        self.cpu_s = 0.0
        self.forces: list[int] = []
        self.orders: list[trainer_messages.Order] = []

    @property
    def work(self) -> Path:
        return Path(self.train.folder)

    def start(self) -> None:
        self.started = True

    def stop(self, force: int = 0) -> None:
        self.forces.append(force)
        if not self.stubborn or force == 2:
            end = failing("killed") if force == 2 else Exit(reason="stopped", weights_sha256="f" * 64)
            asyncio.get_running_loop().call_soon(self.end, end)

    def order(self, order: trainer_messages.Order) -> None:
        self.orders.append(order)

    def meet(self) -> None:
        self.say(trainer_messages.Booted(seconds=5.0, devices=()))
        self.say(trainer_messages.Met(strategy="MirroredStrategy", replicas=2))

    def make_step(self, number: int = 0) -> None:
        self.say(progress(number))

    def end(self, end: Exit = FINISHED) -> None:
        if not self.over:
            self.over = True
            self._on_exit(end)


def _copy_as_it_is(folder: Path, copy: Path) -> None:
    """Other threads may go on deleting, and draw on reports."""
    for place, _, names in os.walk(folder):
        here = copy / Path(place).relative_to(folder)
        here.mkdir(parents=True)
        for name in names:
            if not name.endswith(".part"):
                with contextlib.suppress(FileNotFoundError):
                    shutil.copy2(Path(place) / name, here)


class Lan:
    """A few paired nodes, each two linked. Every message is encoded and decoded on its way."""

    def __init__(
        self,
        folder: Path,
        names: tuple[str, ...] = ("Anna", "Ben"),
        limits: RunLimits | None = None,
        level: Level = Level(0, False),  # noqa: B008 (frozen)
        *,
        tells_busy: bool = False,
        strangers: tuple[str, ...] = (),
    ) -> None:
        """``tells_busy``: nodes learn which others are busy, as over links; else all look idle.
        ``strangers``: nodes that are linked with each other and not paired."""
        self.clock = HandClock()
        self.limits = limits
        self.tells_busy = tells_busy
        self.strangers = strangers
        self.level = level
        certificates = {name: build(device_key(number + 1)) for number, name in enumerate(names)}
        self.nodes = {name: LanNode(self, name, certificates, folder / name) for name in names}
        self._certificates = certificates
        self._crashed: list[LanNode] = []
        self._killed: list[FakeTrainer] = []
        self.by_device = {node.device: node for node in self.nodes.values()}
        self._cut: set[frozenset[DeviceId]] = set()
        self._lost: set[frozenset[DeviceId]] = set()
        self._on_their_way: list[Callable[[], None]] | None = None

    async def __aenter__(self) -> Lan:
        for node in self.nodes.values():
            await node.runs.open()
            for other in self.nodes.values():
                if other is not node:
                    node.meet(other)
        return self

    async def __aexit__(self, *_: object) -> None:
        for trainer in self._killed:  # closing waits for their end
            trainer.over = False
        for node in (*self.nodes.values(), *self._crashed):
            await node.runs.close()

    def carry(self, arrive: Callable[[], None]) -> None:
        """Puts a message under way."""
        if self._on_their_way is None:
            asyncio.get_running_loop().call_soon(arrive)
        else:
            self._on_their_way.append(arrive)

    def pause(self) -> None:
        """Nothing arrives anywhere until ``go_on``."""
        self._on_their_way = []

    def go_on(self) -> None:
        waiting, self._on_their_way = self._on_their_way or [], None
        for arrive in waiting:
            self.carry(arrive)

    def is_cut(self, one: DeviceId, other: DeviceId) -> bool:
        return frozenset((one, other)) in self._cut

    def is_lost(self, one: DeviceId, other: DeviceId) -> bool:
        return frozenset((one, other)) in self._lost

    def cut(self, one: LanNode, other: LanNode) -> None:
        """Each becomes away for the other, and messages wait until ``mend``."""
        self._cut.add(frozenset((one.device, other.device)))
        one.was_cut.set()
        other.was_cut.set()
        for node, peer in ((one, other), (other, one)):
            node.emit(ev.LinkDown(device=peer.device, problem=LOST))
            node.questions.give_up(peer.device)
            node.runs.on_link(LinkAway(peer.device, LOST))

    def lose(self, one: LanNode, other: LanNode, problem: Problem) -> None:
        """The link is over, and messages under way are lost."""
        self._lost.add(frozenset((one.device, other.device)))
        for node, peer in ((one, other), (other, one)):
            node.held.pop(peer.device, None)
            node.emit(ev.LinkDown(device=peer.device, problem=problem))
            node.questions.give_up(peer.device)
            node.runs.on_link(LinkLost(peer.device, problem))

    def mend(self, one: LanNode, other: LanNode) -> None:
        for broken in (self._cut, self._lost):
            broken.discard(frozenset((one.device, other.device)))
        for node, peer in ((one, other), (other, one)):
            node.meet(peer)
            node.runs.on_link(LinkBack(peer.device))
        for node, peer in ((one, other), (other, one)):
            for data in node.held.pop(peer.device, []):
                self.carry(partial(node.arrive, peer.device, data))

    async def crash(self, name: str, *, go_on: bool = False) -> LanNode:
        """A node that is cut off from all others crashes and is started again. ``go_on``: the setting to go
        on with interrupted runs."""
        before = self.nodes[name]
        for trainer in before.trainers:
            if not trainer.over:
                trainer.over = True
                self._killed.append(trainer)
        lost = before.home.folder
        copy = lost.with_name(f"{lost.name}-again")
        await before.runs.history._disk.do(_copy_as_it_is, lost, copy)
        self._crashed.append(before)
        after = self.nodes[name] = LanNode(self, name, self._certificates, copy)
        self.by_device[after.device] = after
        await after.runs.open()
        await after.runs.returns.recover(after.runs.history, go_on=go_on)
        return after

    async def wait_until(self, true: Callable[[], object]) -> None:
        """Waits until ``true()``. Checks after each turn of the loop: the threads' work ends when it ends."""
        async with asyncio.timeout(PATIENCE_S):
            while not true():  # noqa: ASYNC110  (threads' work is waited for too)
                await asyncio.sleep(0.001)


class LanNode:
    def __init__(self, lan: Lan, name: str, certificates: dict[str, bytes], folder: Path) -> None:
        self.lan = lan
        self.name = name
        self.device = device_id(certificates[name])
        self.home = Home(folder)
        for part in (self.home.runs, self.home.projects):
            part.mkdir(parents=True, exist_ok=True)
        store = TrustStore(self.device)
        for other, der in certificates.items():
            if other != name and not {name, other} <= {*lan.strangers}:
                peer = TrustedPeer(cert_der=der, name_at_pairing=other, paired_at=0.0)
                store = set_policy(add(store, peer), peer.device, "always")
        self.trust = SavedTrust(folder, store, lambda before, after: None)
        self.state = State()
        self.events: list[ev.Event] = []
        self.trainers: list[FakeTrainer] = []
        self.was_cut = asyncio.Event()
        self.questions = Questions(self.send)
        self.held: dict[DeviceId, list[bytes]] = {}
        """Messages sent over a cut link."""
        self.files = LanFiles(self)
        self.emit(
            ev.NodeStarted(
                device=self.device,
                name=name,
                addresses=(),
                versions=structs.replace(installed(), seal="namespace"),
                hardware=Hardware(cpu="cpu", cores=4, memory_bytes=1 << 34),
                settings=Settings(name=name),
                home=str(folder),
            )
        )
        self.runs = NodeRuns(
            self.home,
            self.device,
            state=lambda: self.state,
            links=self,
            transfers=self.files,
            trust=self.trust,
            emit=self.emit,
            on_busy=self.tell_busy,
            clock=lan.clock,
            make_trainer=self.make_trainer,
            limits=lan.limits,
            level=lan.level,
        )

    def make_trainer(self, train: trainer_messages.Train, **callbacks: object) -> FakeTrainer:
        trainer = FakeTrainer(train, **callbacks)  # type: ignore[arg-type]
        self.trainers.append(trainer)
        return trainer

    def emit(self, event: ev.Event) -> None:
        self.state = apply(self.state, event)
        self.events.append(event)
        if isinstance(event, ev.LinkUp | ev.LinkDown | ev.BusyChanged):
            self.runs.returns.on_news()

    def tell_busy(self, busy: bool) -> None:
        for other in self.lan.nodes.values() if self.lan.tells_busy else ():
            if self.device in other.state.devices and not self.lan.is_lost(self.device, other.device):
                self.lan.carry(partial(other.emit, ev.BusyChanged(device=self.device, busy=busy)))

    def meet(self, other: LanNode) -> None:
        if self.trust.store.peer(other.device) is not None:
            self.emit(ev.DevicePaired(device=other.device, name=other.name, policy="always"))
        me = other.state.me
        assert me is not None
        self.emit(
            ev.LinkUp(
                device=other.device,
                name=other.name,
                address="127.0.0.1:1",
                versions=me.versions,
                hardware=me.hardware,
                busy=self.lan.tells_busy and other.runs.busy,
            )
        )

    def ask_before_running(self, other: LanNode) -> None:
        """Keeps earlier consents, which ``set_policy`` would forget."""
        peer = self.trust.store.peer(other.device)
        if peer is not None and peer.code_policy == "always":
            self.trust.store = set_policy(self.trust.store, other.device, "ask")

    # --- links ------------------------------------------------------------------------------------

    def send(self, device: DeviceId, message: Message) -> bool:
        is_cut = self.lan.is_cut(self.device, device)
        if self.lan.is_lost(self.device, device) or (is_cut and kind_of(message)[0] == "questions"):
            return False
        data = wire.to_msgpack(message)
        self.lan.carry(partial(self.arrive, device, data))
        return True

    def arrive(self, device: DeviceId, data: bytes) -> None:
        if self.lan.is_cut(self.device, device):
            self.held.setdefault(device, []).append(data)
        elif not self.lan.is_lost(self.device, device):
            message: Message = wire.from_msgpack(data, Message)  # type: ignore[arg-type]
            other = self.lan.by_device[device]
            if not other.questions.on_message(self.device, message):
                other.runs.on_message(self.device, message)

    async def ask(self, device: DeviceId, question: Message, limit_s: float) -> Message | None:
        return await self.questions.ask(device, question, limit_s)

    def peer_host(self, device: DeviceId) -> str:
        is_gone = self.lan.is_cut(self.device, device) or self.lan.is_lost(self.device, device)
        return "" if is_gone else "127.0.0.1"

    def own_host(self, device: DeviceId) -> str:
        return self.peer_host(device)

    def node_pin(self, device: DeviceId) -> None:
        """Links in memory need none."""

    # --- what a test asks ---------------------------------------------------------------------------

    @property
    def phase(self) -> Phase | None:
        return self.state.run.phase if self.state.run else None

    @property
    def over(self) -> bool:
        return self.phase is not None and ended(self.phase) and not self.runs.busy

    @property
    def notices(self) -> list[str]:
        return [event.problem.code for event in self.events if isinstance(event, ev.NoticeRaised)]

    @property
    def runs_a_trainer(self) -> bool:
        return any(not trainer.over for trainer in self.trainers)

    def member_phase(self, member: LanNode) -> str:
        """A member's phase on this node's screen."""
        assert self.state.run is not None
        return self.state.run.members[member.device].phase

    def last_phases(self) -> list[Phase]:
        return [
            event.phase
            for event in self.events
            if isinstance(event, ev.RunPhaseChanged) and ended(event.phase)
        ]


def project(folder: Path, text: str = "import keras\nmodel = keras.Sequential()\nmodel.fit(1)\n") -> RunSpec:
    """A script with a file beside it, in its own folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.py").write_text(text)
    (folder / "data.csv").write_text("1,2\n" * 100_000)
    return RunSpec(script=str(folder / "train.py"), seed=1)


def keep(folder: Path, step: int, data: bytes = b"w" * 700_000) -> None:
    """A checkpoint as saved by a trainer."""
    files = {"now.json": [b"{}"], "now.bin": [data], "fit-0.bin": [b""]}
    checkpoint_store.write(folder, Moment(step=step, fit=1, epoch=2, batch=3), (3, 1), files, {})
