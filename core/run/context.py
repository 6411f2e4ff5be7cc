"""What both sides of a run work with on this node: its folders, its threads, its clock, its links."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from core.project.store import ProjectStore
from core.runtime.background import Background
from core.runtime.timers import Clock
from core.runtime.worker_thread import WorkerThread
from core.supervisor.trainers import MakeTrainer
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.peer_messages import Message


class RunLinks(Protocol):
    """What a run needs of ``core.link.hub.Links``."""

    def send(self, device: DeviceId, message: Message) -> bool: ...

    async def send_flowing(self, device: DeviceId, message: Message) -> bool: ...

    def peer_host(self, device: DeviceId) -> str: ...

    def own_host(self, device: DeviceId) -> str: ...


@dataclass(frozen=True, slots=True)
class Workplace:
    """``files``: the thread for projects and outputs; one, so that pieces are written in order."""

    me: DeviceId
    runs: Path
    store: ProjectStore
    links: RunLinks
    clock: Clock
    files: WorkerThread
    background: Background
    make_trainer: MakeTrainer

    def folder(self, run: RunId) -> Path:
        return self.runs / run
