"""Invites a laptop into a run that is under way: gets its user's yes and sends the files first. On the core
loop.

The laptop is asked as for any run, under a separate id, and released once it is ready. Its user's yes and the
files are stored there by then, so the run stops for no longer than a start takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from core.project.send import ListingReader, ManifestReader
from core.run.context import RunContext
from core.run.coordinator.state import for_others
from core.run.planner import Planned
from core.run.transfer import data_readers
from core.runtime.timers import Timers
from core.transfer.offer import OfferedFiles
from core.vocabulary import limits
from core.vocabulary import peer_messages as ms
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.events import JoinProgressed, MemberPhaseChanged
from core.vocabulary.ids import DeviceId
from core.vocabulary.traffic import run_of

SLOWEST_BYTES_S = 50_000.0
"""A laptop that receives files more slowly than this would hold up the next invitations."""
WORK_S = 3600.0
"""How long a laptop may read and copy its own files, if it keeps reporting that it does."""
_LET_GO = Problem(code="invited", what="This laptop is ready to join the run.")
_UNANSWERED = Problem(code="not-prepared", what="it did not answer in time.")


@dataclass(slots=True)
class Absent:
    """A laptop that is to join. Times are on the run's clock."""

    name: str
    not_before_s: float = 0.0
    busy_until_s: float = 0.0
    """It was busy with its own run, and is not asked again before."""
    invited: bool = False
    ready: bool = False
    asked: bool = False
    """The user asked for it."""

    @property
    def due_s(self) -> float:
        return max(self.not_before_s, self.busy_until_s)


class Invitation:
    """``on_over`` is called once, unless ``end`` is called: with None when the laptop is ready. Whoever
    invites ends the invitation when the link is lost.

    Security invariant: no message keeps the invitation open except reports that the laptop reads or receives
    files, and these only for a limited time.
    """

    def __init__(
        self,
        context: RunContext,
        device: DeviceId,
        planned: Planned,
        on_over: Callable[[Problem | None], None],
    ) -> None:
        self._context = context
        self.device = device
        self.run = planned.plan.run
        self._project = planned.project
        self._on_over = on_over
        self._over = False
        self._is_receiving = False
        self._offers: list[Callable[[], None]] = []
        if (listing := self._project.listing) is not None:
            self._offer(ListingReader(self._project.manifest, listing))
        for reader in data_readers(self._project.data):
            self._offer(reader)
        context.send(device, for_others(planned.request))
        data_bytes = sum(each.data.total_bytes for each in self._project.data)
        self._transfer_s = (self._project.manifest.total_bytes + data_bytes) / SLOWEST_BYTES_S
        self._timers = Timers[Literal["answer"]](context.clock, lambda _: self._end(_UNANSWERED))
        # If its user does not answer, its own Tandem declines before this.
        answer_s = limits.CONSENT_S + 2 * limits.SLACK_S
        self._last_s = context.clock.time() + answer_s + WORK_S + self._transfer_s
        self._ends_s = 0.0
        self._wait(answer_s)

    def on_message(self, device: DeviceId, message: ms.Message) -> bool:
        """False: the message is about something else."""
        if device != self.device or run_of(message) != self.run:
            return False
        match message:
            case ms.FilesWanted(total_bytes=total_bytes) if not self._is_receiving:
                self._is_receiving = True
                if total_bytes:
                    self._offer(ManifestReader(Path(self._project.folder), self._project.manifest))
                    self._context.send(device, ms.FilesFrom(run=self.run, giver=self._context.me))
                self._ends_s = 0.0  # Its user has answered.
                self._wait(limits.RECEIVE_S + limits.SLACK_S + self._transfer_s)
            case ms.EventTold(event=MemberPhaseChanged(phase="receiving", done=done, total=total) as told):
                self._wait(limits.RECEIVE_S + limits.SLACK_S)
                if self._is_receiving and 0 <= done <= total:
                    self._tell(done, total, told.rate_bytes_s, told.words)
            case ms.Prepared():
                self._end(None)
            case ms.Declined(problem=problem):
                self._end(problem)
        return True

    def end(self) -> None:
        """Withdraw the invitation."""
        if not self._over:
            self._over = True
            self._timers.cancel_all()
            if self._is_receiving:
                self._tell(0, 0)
            for withdraw in self._offers:
                withdraw()
            let_go = ms.RunAbandoned(run=self.run, problem=_LET_GO)
            self._context.send(self.device, let_go)

    def _end(self, problem: Problem | None) -> None:
        if not self._over:
            self.end()
            self._on_over(problem)

    def _tell(self, done: int, total: int, rate_bytes_s: float = 0.0, words: str = "") -> None:
        event = JoinProgressed(
            device=self.device, done=done, total=total, rate_bytes_s=rate_bytes_s, words=words
        )
        self._context.emit(event)

    def _wait(self, seconds: float) -> None:
        """Wait at least this long from now on, but not beyond the last moment."""
        now_s = self._context.clock.time()
        self._ends_s = min(max(self._ends_s, now_s + seconds), self._last_s)
        self._timers.set("answer", self._ends_s - now_s)

    def _offer(self, reader: ManifestReader | ListingReader) -> None:
        def failed(error: TandemError) -> None:
            self._end(error.problem)

        self._offers.append(
            self._context.transfers.offer(self.device, OfferedFiles(reader, failed, yields=True))
        )
