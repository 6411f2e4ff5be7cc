"""What both sides of a run share on this node: its folders, threads, clock, and links."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self

from core.home.home import Home
from core.project.data import LocalData, find_again
from core.project.files import UNWATCHED, ReadMeter
from core.project.light_receipts import AnyReceipt
from core.project.outputs import LIMIT_BYTES as OUTPUTS_BYTES
from core.project.store import ProjectStore
from core.run.transfer_rates import TransferRates
from core.runtime.background import Background, WorkerThread
from core.runtime.timers import Clock
from core.supervisor.loading_times import LoadingTimes
from core.supervisor.trainers import MakeTrainer, real_trainers
from core.supervisor.warm import WarmTrainer
from core.transfer.offer import OfferedFiles
from core.vocabulary import limits
from core.vocabulary.access import Access, Grant
from core.vocabulary.data import Data, data_gone
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event, NoticeRaised
from core.vocabulary.ids import DeviceId, ProjectId, RunId, short
from core.vocabulary.peer_messages import Message
from core.vocabulary.plan import NodePin, Plan
from core.vocabulary.state import Device, State
from core.walls import grants, levels, places
from core.walls.levels import Level

_log = logging.getLogger(__name__)


Send = Callable[[DeviceId, Message], bool]


class RunLinks(Protocol):
    """The part of ``core.link.hub.Links`` that a run needs."""

    def send(self, device: DeviceId, message: Message) -> bool: ...

    async def ask(self, device: DeviceId, question: Message, limit_s: float) -> Message | None: ...

    def peer_host(self, device: DeviceId) -> str: ...

    def own_host(self, device: DeviceId) -> str: ...

    def node_pin(self, device: DeviceId) -> NodePin | None: ...


class RunTransfers(Protocol):
    """The part of ``core.transfer.hub.Transfers`` that a run needs."""

    def offer(self, device: DeviceId, files: OfferedFiles) -> Callable[[], None]: ...

    async def fetch(
        self,
        device: DeviceId,
        receipt: AnyReceipt,
        on_piece: Callable[[], None] = ...,
        *,
        silent_s: float | None = ...,
    ) -> None: ...


class Loopback:
    """Sends to peers, and to this node: the other side of its own run receives messages as a peer would.

    Calls ``deliver(me, message)`` on the next turn of the loop, in order, as a link would; if that raises,
    ``on_crash(name, error)``, since the message would be lost unnoticed.
    """

    def __init__(
        self,
        me: DeviceId,
        send: Send,
        deliver: Callable[[DeviceId, Message], object],
        on_crash: Callable[[str, BaseException], None],
    ) -> None:
        self._me = me
        self._send = send
        self._deliver = deliver
        self._on_crash = on_crash
        self._loop = asyncio.get_running_loop()

    def send(self, device: DeviceId, message: Message) -> bool:
        if device != self._me:
            return self._send(device, message)
        self._loop.call_soon(self._arrive, message)
        return True

    def _arrive(self, message: Message) -> None:
        try:
            self._deliver(self._me, message)
        except Exception as error:
            _log.exception("handling a message to oneself")
            self._on_crash(f"a run's {type(message).__name__}", error)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """Limits of waits outside a run's machines: see ``core.vocabulary.limits`` for the machines' own."""

    look_s: float = 2.0
    """How long a screen that shows a run waits for others' checkpoints; a later answer comes as an event."""
    modules_s: float = 3.0
    """How long another laptop may take to search its disk for a few modules. Without an answer there is no
    warning."""
    load_ahead_s: float = 30.0
    """How long trainers may load TensorFlow before a run stops to add a laptop: it would wait for them."""
    first_piece_s: float = 180.0
    """How long until another laptop sends a checkpoint's first piece, besides the time to read it."""
    idle_s: float = 20.0
    """How long the members of a run that goes on may take to end their part in the previous one."""
    stand_in_s: float = limits.LEAVE_S + limits.FAREWELL_S + limits.SLACK_S
    """How long a stand-in waits for those who are still ending their part, one of whose steps may be long."""
    asked_s: float = 120.0
    """How long a member waits for the stand-in's request before it reports that none came."""
    recover_s: float = 60.0
    """How long a run that goes on after a crash waits for its other laptops, which may still be starting."""
    silent_s: float = 6.0
    """How long a trainer alone may take for its step and a checkpoint when the system ends the node."""
    listing_s: float = 120.0
    """How long the list of a project's files may take: no user is asked before it is here."""
    giver_silent_s: float = 10.0
    """Silence after which a member that forwards files is given up: the starter has them too."""
    outputs_bytes: int = OUTPUTS_BYTES
    """Limit of all outputs that are brought back to the starter."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """What runs need of their node. ``files``: the thread for projects and outputs."""

    me: DeviceId
    runs: Path
    temporary: Path
    hashes: Path
    store: ProjectStore
    loading: LoadingTimes
    links: RunLinks
    transfers: RunTransfers
    send: Send
    """Over the links; for the two sides of a run, also to this node."""
    state: Callable[[], State]
    emit: Callable[[Event], None]
    clock: Clock
    files: WorkerThread
    background: Background
    make_trainer: MakeTrainer
    limits: RunLimits
    level: Level
    """How strictly walls confine other laptops' code here."""
    rates: TransferRates
    """Rate of the last large transfer from each device."""

    def looped(
        self, deliver: Callable[[DeviceId, Message], object], on_crash: Callable[[str, BaseException], None]
    ) -> Self:
        """The context for one side of a run, whose messages to this node go to ``deliver``."""
        return replace(self, send=Loopback(self.me, self.links.send, deliver, on_crash).send)

    def known(self, device: DeviceId) -> Device | None:
        """Another laptop, as screens show it."""
        return self.state().devices.get(device)

    def is_linked(self, device: DeviceId) -> bool:
        known = self.known(device)
        return known is not None and known.linked

    def name_of(self, device: DeviceId) -> str:
        known = self.known(device)
        return known.shown_name if known is not None else short(device)

    @property
    def my_name(self) -> str:
        return here.name if (here := self.state().me) is not None else "this laptop"

    def folders(self) -> Mapping[str, str]:
        """This user's data folders, by name."""
        return here.settings.data if (here := self.state().me) is not None else {}

    def notice(self, problem: Problem) -> None:
        """Tell this laptop's user, outside of any run."""
        self.emit(NoticeRaised(problem=problem))

    @property
    def unix_offset_s(self) -> float:
        """Unix time minus the clock's time."""
        return time.time() - self.clock.time()

    def opened(self, plan: Plan) -> tuple[Grant, ...]:
        """Folders that the script asks to open beside its own; none without walls, where everything is open.

        Blocks. Raises ``TandemError`` for folders that no script may open.
        """
        found = grants.find(plan.member(self.me).opens, self.runs.parent)
        return found if self.level.walls == "default" else ()

    def reach_of(self, plan: Plan) -> tuple[Grant, ...]:
        """Everything here that the script may open beside its own folders: this user is asked about it.

        Blocks. Raises ``TandemError``.
        """
        return self.opened(plan) + (
            tuple(self.data_folders(plan).values()) if self.level.walls == "default" else ()
        )

    def lacking_data(self, plan: Plan) -> tuple[Data, ...]:
        """Data that no earlier run brought here, and that Keras has not downloaded here either. Blocks: reads
        Keras' downloads, once."""
        has = self.store.has
        return tuple(
            data
            for data in plan.data
            if self.find_keras_download(data) is None and not has(ProjectId(data.listing.digest))
        )

    def find_keras_download(self, data: Data, meter: ReadMeter = UNWATCHED) -> Path | None:
        """Where Keras has already downloaded the same data here; None: nowhere. Blocks.

        Files are compared, since Keras leaves empty folders and parts of files behind. Not on Windows, where
        a script uses its user's own folder and would not find files that were sent.
        """
        if not data.kept_by_keras:
            return None
        place = Path(places.keras_home() or Path.home() / places.KERAS, data.kept_by_keras)
        if sys.platform == "win32" or find_again(data, place, self.hashes, meter) is not None:
            return place
        return None

    def data_folders(self, plan: Plan) -> dict[str, Grant]:
        """This user's data folders that another laptop's run names, with their real paths.

        Blocks. Raises ``TandemError`` for folders that no script may open.
        """
        if plan.starter == self.me:
            return {}
        named = {data: self.folders().get(data.name) for data in plan.data}
        return {
            data.name: data.grant(grants.find([Access(path=path)], self.runs.parent)[0].path)
            for data, path in named.items()
            if path is not None
        }

    def find_again(self, plan: Plan) -> list[LocalData]:
        """The data of a run that another laptop began: as received, or in this user's own folders. Leaves
        out Keras' downloads, which Keras repeats. Blocks. Raises ``TandemError`` where some is gone."""
        own = self.data_folders(plan)
        found = []
        for data in plan.data:
            if data.kept_by_keras:
                continue
            place = self.store.find_data(data, self.hashes)
            if place is None and data.name in own:
                place = Path(own[data.name].path)
            here = None if place is None else find_again(data, place, self.hashes)
            if here is None:
                raise data_gone(data)
            found.append(here)
        return found

    def folder(self, run: RunId) -> Path:
        return self.runs / run


def context_of(
    home: Home,
    me: DeviceId,
    state: Callable[[], State],
    emit: Callable[[Event], None],
    links: RunLinks,
    transfers: RunTransfers,
    warm: WarmTrainer,
    on_crash: Callable[[str, BaseException], None],
    clock: Clock | None = None,
    make_trainer: MakeTrainer | None = None,
    limits: RunLimits | None = None,
    level: Level | None = None,
) -> RunContext:
    """A node's context; None selects the defaults outside of tests. On the core loop."""
    loading = LoadingTimes(home.loading)
    return RunContext(
        me=me,
        runs=home.runs,
        temporary=home.temporary,
        hashes=home.hashes,
        store=ProjectStore(home.projects),
        loading=loading,
        links=links,
        transfers=transfers,
        send=links.send,
        state=state,
        emit=emit,
        clock=clock or asyncio.get_running_loop(),
        files=WorkerThread("files"),
        background=Background(on_crash),
        make_trainer=make_trainer or real_trainers(warm, loading),
        limits=limits or RunLimits(),
        level=level or levels.found(),
        rates=TransferRates(home.rates),
    )
