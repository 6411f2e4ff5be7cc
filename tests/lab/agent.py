"""One ``tandem agent --jsonl`` child process with its own home, controlled like any script would.

For tests and tours without an event loop: a thread reads its output, everything else waits for that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self, TypeVar

import psutil
from msgspec.structs import replace

from core.home import home as homes
from core.home import settings_file
from core.home.home import Home
from core.node import json_lines
from core.vocabulary.answers import Answer, Done, Refused, RunAccepted
from core.vocabulary.commands import Command, Quit, StartRun
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Phase, ended
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import Settings
from core.vocabulary.state import Run, State, apply

LIMIT_S = 120.0
"""For everything without TensorFlow: far beyond what any machine needs."""
TRAINED_S = 280.0
"""For everything that loads TensorFlow first."""
ROOT = Path(__file__).parents[2]
TANDEM = ("-m", "app")
V = TypeVar("V")
E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Told:
    """An event, and the time it came out of the agent (``time.monotonic``)."""

    at_s: float
    event: Event


class Agent:
    """Runs from its creation until ``end``. ``enter``: a prefix of the command line, to run it elsewhere."""

    def __init__(
        self,
        home: Home,
        *,
        enter: Sequence[str] = (),
        options: Sequence[str] = (),
        settings: Settings | None = None,
        environment: dict[str, str] | None = None,
        program: Sequence[str] = TANDEM,
    ) -> None:
        """``program``: Python's arguments before Tandem's own."""
        self.home = home
        self.name = home.folder.name
        self.state = State()
        self.told: list[Told] = []
        if settings is not None:
            homes.prepare(home)
            # Children are counted, and all of them are to be trainers of a run.
            settings_file.write(home.settings, replace(settings, foresee=False))
        self._answers: dict[int, Answer] = {}
        self._number = 0
        self._news = threading.Condition()
        self._gone = False
        self._errors = home.folder.with_name(f"{self.name}.stderr")
        with self._errors.open("ab") as errors:
            self._process = subprocess.Popen(
                (
                    *enter,
                    sys.executable,
                    *program,
                    "agent",
                    "--jsonl",
                    "--home",
                    str(home.folder),
                    *options,
                ),
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Trainers of several laptops on one machine cannot share its GPU.
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", **(environment or {})},
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name=f"agent-{self.name}", daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        try:
            self.until(lambda state: state.me, "say that it is ready")
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.end()

    @property
    def device(self) -> DeviceId:
        assert self.state.me is not None
        return self.state.me.device

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self._process.pid)

    @property
    def process_lives(self) -> bool:
        return self._process.poll() is None

    def trainers(self) -> list[psutil.Process]:
        """Its child processes."""
        return self.process.children(recursive=True)

    # --- speaking ------------------------------------------------------------------------------------------

    def ask(self, command: Command, limit_s: float = LIMIT_S) -> Answer:
        assert self._process.stdin is not None
        with self._news:
            self._number += 1
            number = self._number
            self._process.stdin.write(json_lines.write_asked(number, command))
            self._process.stdin.flush()
            self._wait(lambda: self._answers.get(number), f"answer {command}", limit_s)
            return self._answers.pop(number)

    def do(self, command: Command) -> None:
        """Submits a command that must be accepted."""
        answer = self.ask(command)
        assert answer == Done(), answer

    def refused(self, command: Command) -> Problem:
        """Why it refuses: what happened, and how to fix it."""
        answer = self.ask(command)
        assert isinstance(answer, Refused), answer
        assert answer.problem.what and answer.problem.fix
        return answer.problem

    def train(self, spec: RunSpec) -> RunId:
        """Presses Train."""
        answer = self.ask(StartRun(spec=spec))
        assert isinstance(answer, RunAccepted), answer
        return answer.run

    # --- waiting -------------------------------------------------------------------------------------------

    def until(self, found: Callable[[State], V | None], awaited: str, limit_s: float = LIMIT_S) -> V:
        """The first truthy value of ``found``, now or later. ``awaited``: the expected result, as in *find
        ben*."""
        with self._news:
            return self._wait(lambda: found(self.state) or None, awaited, limit_s)

    def hears(
        self,
        kind: type[E],
        found: Callable[[E], object] = lambda event: True,
        *,
        since: int = 0,
        limit_s: float = LIMIT_S,
    ) -> Told:
        """The first such event from number ``since`` of ``told`` on."""

        def look() -> Told | None:
            heard = (told for told in self.told[since:] if isinstance(told.event, kind) and found(told.event))
            return next(heard, None)

        with self._news:
            return self._wait(look, f"tell {kind.__name__}", limit_s)

    def trains(self, run: RunId, limit_s: float = TRAINED_S) -> Run:
        """Waits until every member of the run makes steps."""

        def making_steps(state: State) -> Run | None:
            present = self._run(state, run)
            if present is None:
                return None
            assert not present.over, f"{self.name}: {present.phase}\n{self.log_end()}"
            return present if all(member.progress for member in present.members.values()) else None

        return self.until(making_steps, "see every member's steps", limit_s)

    def ends(self, run: RunId, limit_s: float = TRAINED_S) -> Phase:
        """Waits until the run is over here."""

        def over(state: State) -> Run | None:
            present = self._run(state, run)
            return present if present is not None and ended(present.phase) else None

        return self.until(over, f"see the end of run {run}", limit_s).phase

    def run(self) -> Run:
        """The present or last run."""
        assert self.state.run is not None
        return self.state.run

    def waits_until_gone(self, limit_s: float = LIMIT_S) -> int:
        """Waits for the process's exit status."""
        return self._process.wait(limit_s)

    @staticmethod
    def _run(state: State, run: RunId) -> Run | None:
        return state.run if state.run is not None and state.run.plan.run == run else None

    def _wait(self, look: Callable[[], V | None], awaited: str, limit_s: float) -> V:
        until_s = time.monotonic() + limit_s
        while True:
            found = look()
            if found is not None:
                return found
            left_s = until_s - time.monotonic()
            if self._gone or left_s <= 0:
                why = "has ended" if self._gone else f"waited {limit_s:g} s"
                raise AssertionError(f"{self.name} did not {awaited}: {why}.\n{self.log_end()}")
            self._news.wait(left_s)

    # --- ending --------------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Like the power button. Returns immediately."""
        self._process.kill()

    def terminate(self) -> None:
        """As the system does at a shutdown. Returns immediately."""
        self._process.terminate()

    def end(self) -> None:
        """Quit, else terminate, else kill. Returns when the process is gone."""
        if self._process.poll() is None and not self._gone:
            try:
                self.ask(Quit())
                self._process.wait(LIMIT_S)
            except (AssertionError, OSError, subprocess.TimeoutExpired):
                pass
        for end in (self._process.terminate, self._process.kill):
            if self._process.poll() is None:
                end()
                try:
                    self._process.wait(30.0)
                except subprocess.TimeoutExpired:
                    continue
        self._reader.join()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdout.close()
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass

    def log_end(self) -> str:
        """The last lines of its log and of its stderr, for the report of a failed test."""
        lines: list[str] = []
        for path in (self.home.logs / "tandem.log", self._errors):
            if path.is_file():
                lines += path.read_text(errors="replace").splitlines()[-40:]
        return "\n".join(lines)

    # --- the reading thread --------------------------------------------------------------------------------

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                at_s = time.monotonic()
                heard = json_lines.read_message(line)
                with self._news:
                    match heard:
                        case json_lines.NodeGreeting(state=state):
                            self.state = state
                        case json_lines.Replied(id=int(number), answer=answer):
                            self._answers[number] = answer
                        case json_lines.Replied():
                            pass
                        case event:
                            self.state = apply(self.state, event)
                            self.told.append(Told(at_s, event))
                    self._news.notify_all()
        finally:
            with self._news:
                self._gone = True
                self._news.notify_all()
