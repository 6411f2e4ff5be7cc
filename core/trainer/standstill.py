"""Notices when meetings with the other members no longer end, and reports what this trainer is doing.

``Standstill`` decides, once a second and without I/O; ``StandstillWatch`` is the thread that calls it.
"""

from __future__ import annotations

import faulthandler
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Literal, Protocol

from core.exchange.state import Waiting
from core.trainer.reporter import Reporter
from core.vocabulary import units
from core.vocabulary.limits import ACTIVITY_EVERY_S
from core.vocabulary.trainer_messages import Said, StatusChanged
from core.vocabulary.waits import Activity, PeerWait, TrainerStatus

CHECK_EVERY_S = 1.0
"""Rare enough to cost nothing, often enough for a wait that a person notices."""
REPORT_AFTER_S = 2.0
STACK_AFTER_S = 20.0
"""A member that keeps the others waiting this long in its own code logs its stack: once for each place."""
SLEPT_S = 5.0
"""A check this late means that this process was stopped, or the laptop slept."""
_RATE_S = 5.0
_STDERR = 2

Place = tuple[Activity, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """``ended``: meetings that have ended. ``awaited``: others wait for this member's contribution."""

    ended: int
    waits: Sequence[Waiting] = ()
    awaited: bool = False


@dataclass(slots=True)
class Standstill:
    """``check`` returns what to report: a ``TrainerStatus``, None once meetings go on, ``"stack"`` to log the
    stacks of all threads."""

    now_s: float
    _ended: int = 0
    _since_s: float = field(init=False)
    _reported: TrainerStatus | None = None
    _reported_s: float = 0.0
    _awaited_s: float | None = None
    """Since when others have waited for this member while it waits for nobody."""
    _has_shown_stack: bool = False
    """Whether the stack was shown during this wait."""
    _shown: set[Place] = field(default_factory=set)
    """Places whose stack was shown."""
    _received: dict[int, deque[tuple[float, int]]] = field(default_factory=dict)
    """Times, each with the bytes received by then, by rank."""

    def __post_init__(self) -> None:
        self._since_s = self.now_s

    def check(
        self, now_s: float, seen: Seen, place: Callable[[], Place]
    ) -> list[TrainerStatus | Literal["stack"] | None]:
        """Calls ``place`` only if this member waits for nobody."""
        gap_s, self.now_s = now_s - self.now_s, now_s
        if gap_s > SLEPT_S:
            self._since_s += gap_s
        has_ended = seen.ended != self._ended
        if not seen.awaited or seen.waits:
            self._awaited_s = None
        elif self._awaited_s is None or has_ended or gap_s > SLEPT_S:
            self._awaited_s = now_s
        if has_ended:
            self._ended, self._since_s, self._has_shown_stack = seen.ended, now_s, False
            self._received.clear()
            reported, self._reported = self._reported, None
            return [None] if reported else []
        lasted_s = now_s - self._since_s
        if lasted_s < REPORT_AFTER_S:
            return []
        peers = tuple(self._peer(now_s, wait) for wait in seen.waits)
        if peers and max(peer.lasted_s for peer in peers) < REPORT_AFTER_S:
            return []  # The script was slow, not this meeting, which may end any moment.
        doing: Place = ("exchange", "") if peers else place()
        activity, where = doing
        status = TrainerStatus(activity=activity, where=where, lasted_s=lasted_s, peers=peers)
        reports: list[TrainerStatus | Literal["stack"] | None] = []
        if self._is_news(status) or now_s - self._reported_s >= ACTIVITY_EVERY_S:
            self._reported, self._reported_s = status, now_s
            reports.append(status)
        is_late = self._awaited_s is not None and now_s - self._awaited_s >= STACK_AFTER_S
        if is_late and not self._has_shown_stack and doing not in self._shown:
            self._has_shown_stack = True
            self._shown.add(doing)
            reports.append("stack")
        return reports

    def _is_news(self, status: TrainerStatus) -> bool:
        before = self._reported
        return before is None or (before.activity, before.where) != (status.activity, status.where)

    def _peer(self, now_s: float, wait: Waiting) -> PeerWait:
        received = self._received.setdefault(wait.rank, deque())
        received.append((now_s, wait.bytes_come))
        while len(received) > 2 and now_s - received[0][0] > _RATE_S:
            received.popleft()
        took_s, more = now_s - received[0][0], wait.bytes_come - received[0][1]
        return PeerWait(
            rank=wait.rank,
            lasted_s=wait.since_s,
            bytes_come=wait.bytes_come,
            bytes_total=wait.bytes_total,
            bytes_s=max(0.0, more / took_s) if took_s > 0 else 0.0,
            connected=wait.connection == "connected",
            heard_s=wait.heard_s,
        )


class Meetings(Protocol):
    """The exchange that is watched, as the engine uses it."""

    @property
    def ended(self) -> int: ...

    @property
    def is_awaited(self) -> bool: ...

    def waiting(self) -> Sequence[Waiting]: ...


class StandstillWatch:
    """Create it on the script's thread, whose stack it reads. Ends with ``end``, or with the process."""

    def __init__(self, meetings: Meetings, reporter: Reporter, folder: Path) -> None:
        self._meetings, self._reporter, self._folder = meetings, reporter, folder
        self._script = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="standstill", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        standstill = Standstill(time.monotonic())
        while not self._over.wait(CHECK_EVERY_S):
            meetings = self._meetings
            seen = Seen(meetings.ended, meetings.waiting(), meetings.is_awaited)
            for report in standstill.check(time.monotonic(), seen, self._place):
                if report == "stack":
                    self._show_stack()
                else:
                    self._reporter.send(StatusChanged(status=report))

    def _place(self) -> Place:
        return place_of(sys._current_frames().get(self._script), self._folder)

    def _show_stack(self) -> None:
        lasted = units.duration(STACK_AFTER_S)
        words = f"The others have waited {lasted} for the script here. Its log shows where it is."
        self._reporter.send(Said(words=words))
        # Never use faulthandler's own timer: it walks the stacks of running threads, and crashes if a stopped
        # process or a sleeping laptop resumes after the timer's end.
        faulthandler.dump_traceback(_STDERR, all_threads=True)


def place_of(frame: FrameType | None, folder: Path) -> Place:
    """What the stack that ends with ``frame`` is doing, and where in the project in ``folder``.

    The innermost known frame counts.
    """
    activity: Activity | None = None
    where = ""
    while frame is not None:
        code = frame.f_code
        if not where and _is_in(code.co_filename, folder):
            file = str(Path(code.co_filename).relative_to(folder))
            where = f"{file[-200:]}, line {frame.f_lineno}"
            if code.co_name != "<module>":
                where += f", in {code.co_name[:100]}"
        activity = activity or _activity(code.co_filename, code.co_name)
        frame = frame.f_back
    return activity or "script", where


def _is_in(filename: str, folder: Path) -> bool:
    return Path(filename).is_relative_to(folder) and "site-packages" not in filename


_STEPS = str(Path("core/trainer/exact/steps"))
_CALLBACKS = (str(Path("keras/src/callbacks/callback_list.py")), str(Path("exact/patch/callbacks.py")))


def _activity(filename: str, name: str) -> Activity | None:
    if filename.startswith("<frozen importlib"):
        return "importing"
    if name == "func_graph_from_py_func":  # TensorFlow traces a function
        return "compiling"
    if filename.endswith(_CALLBACKS):
        return "callback"
    return "step" if _STEPS in filename else None
