"""Shows a run on a terminal: a live display, or plain lines if nothing can move."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol, Self

from app.cli.screen import Screen
from app.models import stragglers
from app.models.paces import Pace, Paces, left_words
from app.words import device_names, run_words, wait_words
from app.words.advice_words import expected_lines
from core.vocabulary import events as ev
from core.vocabulary import units
from core.vocabulary.events import Event
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.phases import Training
from core.vocabulary.state import Run, State
from core.vocabulary.text import plain, plain_lines

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

REFRESH_S = 0.15
PLAIN_EVERY_S = 10.0
"""Interval of plain lines between epochs: long epochs need a sign of life."""
PACE_S = 0.5
"""Interval at which speed is sampled, as in the window: a trainer reports it ten times a second."""


class Display(Protocol):
    """Entered for the length of a run; ``on_event`` is called after each event."""

    def on_event(self, event: Event, state: State) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *failure: object) -> None: ...


class LidLine:
    """What closing this laptop's lid would do, once it trains, and whenever that changes."""

    def __init__(self) -> None:
        self._said = ""

    def news(self, run: Run, state: State, names: dict[DeviceId, str]) -> str:
        """``""``: nothing new."""
        words = wait_words.if_lid_closes(run, state, names) if isinstance(run.phase, Training) else ""
        if not words or words == self._said:
            return ""
        self._said = words
        return words


class Plain:
    """One line per event. ``clock``: seconds, monotonic."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._said_s = clock()
        self._paces = Paces(PACE_S, clock)
        self._phase = ""
        self._phases: dict[DeviceId, str] = {}
        self._waits: tuple[object, ...] = ()
        """The last wait message, without its numbers."""
        self._lid = LidLine()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        pass

    def on_event(self, event: Event, state: State) -> None:
        run = state.run
        if run is None:
            return
        self._paces.hear(run)
        names = device_names.names_of(state, run.members)
        match event:
            case ev.RunPhaseChanged() if (words := run_words.run_phase_words(run)) != self._phase:
                self._phase = words
                self._say(words)
            case ev.MemberPhaseChanged(device=device, phase=phase) if (
                phase != self._phases.get(device) or self._clock() - self._said_s >= PLAIN_EVERY_S
            ):
                self._phases[device] = phase
                member = run.members[event.device]
                self._say(f"{names[event.device]}: {run_words.member_words(member)}")
            case ev.MemberProgressed() if self._clock() - self._said_s >= PLAIN_EVERY_S:
                self._say(_progress_line(run, event.device, names, self._paces.recent))
            case ev.MemberEndedEpoch(epoch=epoch) if _tells_epochs(run, event.device):
                self._say(f"{names[event.device]}: {run_words.epoch_line(epoch)}")
            case ev.MemberLogged() | ev.MemberMeasured():
                for line in _lines_above(event, run, names):
                    self._say(line)
            case ev.WaitingChanged():
                self._on_waiting(event, run, names)
        if lid := self._lid.news(run, state, names):
            self._say(lid)

    def _on_waiting(self, event: ev.WaitingChanged, run: Run, names: dict[DeviceId, str]) -> None:
        before, self._waits = self._waits, wait_words.gist(event)
        if self._waits != before or self._clock() - self._said_s >= PLAIN_EVERY_S:
            for line in wait_words.lines(run, names) or [wait_words.GOES_ON]:
                self._say(line)

    def _say(self, line: str) -> None:
        self._said_s = self._clock()
        self._screen.say(line)


class FetchLines:
    """Reports the progress of long preparations: reading a run's files, fetching the checkpoint that it
    resumes from, and sending the files to a laptop that will join. A listener: prints a line at the first
    piece, at a checkpoint's last, and now and then. ``clock``: seconds."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._said_s: dict[str, float] = {}
        """When each thing under way was last reported."""

    def __call__(self, event: Event, state: State) -> None:
        match event:
            case ev.FilesRead(total=total):
                self._tell("files", run_words.reading_words(event) if total else "")
            case ev.JoinProgressed():
                self._tell("join", run_words.joining_words(state))
            case ev.CheckpointCame(device=device, done=done, total=total):
                name = device_names.name_of(state, device)
                self._tell(device, run_words.fetch_words(event, name), is_last=done == total)

    def _tell(self, what: str, words: str, *, is_last: bool = False) -> None:
        """No ``words``: it is over."""
        if not words:
            self._said_s.pop(what, None)
        elif is_last or self._clock() - self._said_s.get(what, -inf) >= PLAIN_EVERY_S:
            self._said_s[what] = self._clock()
            self._screen.say(words)


class Moving:
    """A table that stays below the script's output."""

    def __init__(self, screen: Screen, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._clock = clock
        self._drawn_s = 0.0
        self._run: RunId | None = None
        self._began_s = clock()
        """When that run began, or this display."""
        self._left_s: dict[DeviceId, float] = {}
        """When laptops left that run."""
        self._paces = Paces(PACE_S, clock)
        self._state: State | None = None
        self._lid = LidLine()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.live import Live

        self._live = Live(
            get_renderable=self._draw, console=self._screen.console, auto_refresh=True, refresh_per_second=4
        )
        self._live.start()
        return self

    def __exit__(self, *failure: object) -> None:
        if self._live is not None:
            self._live.stop()

    def on_event(self, event: Event, state: State) -> None:
        self._state = state
        if (run := state.run) is not None:
            if self._run not in (None, run.plan.run):
                self._began_s = self._clock()
                self._left_s.clear()
            self._run = run.plan.run
            if isinstance(event, ev.MemberLeft):
                self._left_s[event.device] = self._clock()
            self._paces.hear(run)
            names = device_names.names_of(state, run.members)
            if isinstance(event, ev.MemberLogged | ev.MemberMeasured):
                for line in _lines_above(event, run, names):
                    self._screen.say(line)
            if lid := self._lid.news(run, state, names):
                self._screen.say(lid, "dim")
        if self._live is not None and self._clock() - self._drawn_s >= REFRESH_S:
            self._drawn_s = self._clock()
            self._live.refresh()

    def _draw(self) -> Group:
        from rich.console import Group

        state = self._state
        if state is None or state.run is None:
            return Group()
        names = device_names.names_of(state, state.run.members)
        resumed = state.run.plan.resume
        before_s, now_s = 0.0 if resumed is None else resumed.took_s, self._clock()
        gone_s = {device: now_s - left_s for device, left_s in self._left_s.items()}
        return picture(state.run, names, before_s + now_s - self._began_s, self._paces.recent, gone_s)


def picture(
    run: Run,
    names: dict[DeviceId, str],
    elapsed_s: float,
    paces: Sequence[Pace] = (),
    gone_s: Mapping[DeviceId, float] = MappingProxyType({}),
) -> Group:
    """The live display at one moment. ``paces``: recent ones, newest last. ``gone_s``: how long ago laptops
    left."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = [run_words.run_phase_words(run), units.clock(elapsed_s), _left(run, paces)]
    table = Table(box=None, show_header=False, pad_edge=False)
    for _ in range(5):
        table.add_column(overflow="ellipsis", no_wrap=True)
    for device, member in run.members.items():
        progress = member.progress
        part = run_words.fraction(progress) if progress is not None else None
        table.add_row(
            Text(names[device], style="bold"),
            Text(_part(run, device), style="dim"),
            ProgressBar(total=1.0, completed=part or 0.0, width=20),
            Text(
                _what(run, device) + (f" ({units.duration(gone_s[device])} ago)" if device in gone_s else "")
            ),
            Text(
                run_words.rate_words(progress) if progress and member.phase == "training" else "", style="dim"
            ),
        )
    waits = [Text(line, style="yellow") for line in wait_words.lines(run, names)]
    if not waits and (straggling := stragglers.waiting_words(run, names)):
        waits = [Text(straggling, style="dim")]
    words = f"{plain(run.plan.script, 60)}: {', '.join(filter(None, head))}"
    return Group(Text(words, style="bold"), table, *waits)


def _left(run: Run, paces: Sequence[Pace]) -> str:
    """``4:10–5:30 left``, as in the window; ``""`` if unknown."""
    progress = run.members[run.chief.device].progress
    if progress is None or not isinstance(run.phase, Training):
        return ""
    words = left_words(progress, paces)
    return f"{words} left" if words else ""


def _lines_above(
    event: ev.MemberLogged | ev.MemberMeasured, run: Run, names: dict[DeviceId, str]
) -> list[str]:
    if isinstance(event, ev.MemberMeasured):
        return expected_lines(event.expectation, run.plan, names)
    return [f"{names[event.device]} | {line}" for line in script_lines(event, run)]


def script_lines(event: ev.MemberLogged, run: Run) -> list[str]:
    """The part of a trainer's output to show: the chief's own, and Tandem's messages about any training."""
    of_chief = event.device == run.chief.device and event.lines.task == run.chief.name
    if event.lines.stream == "tandem" or (event.lines.stream == "stdout" and of_chief):
        return plain_lines(event.lines.text, 300)
    return []


def _tells_epochs(run: Run, device: DeviceId) -> bool:
    """Members of a managed run have the same logs: the chief's are enough."""
    return run.plan.strategy == "own" or device == run.chief.device


def _what(run: Run, device: DeviceId) -> str:
    member = run.members[device]
    if member.phase == "training" and member.progress is not None:
        progress = member.progress
        return f"{run_words.step_words(progress)}  {run_words.logs_words(progress.logs)}"
    return run_words.member_words(member)


def _part(run: Run, device: DeviceId) -> str:
    """``48 of 64 rows``; with roles, ``chief:0, 48 of 64 rows``."""
    words = (run_words.tasks_words(run.plan, device), run_words.share_words(run, device))
    return ", ".join(word for word in words if word)


def _progress_line(run: Run, device: DeviceId, names: dict[DeviceId, str], paces: Sequence[Pace]) -> str:
    progress = run.members[device].progress
    assert progress is not None  # the event that led here carried it
    more = [
        run_words.rate_words(progress),
        _left(run, paces),
        run_words.share_words(run, device) if progress.share is not None else "",
        stragglers.who_waits(run, names),
    ]
    words = "; ".join(word for word in more if word)
    return f"{names[device]}: {_what(run, device)}" + (f" ({words})" if words else "")
