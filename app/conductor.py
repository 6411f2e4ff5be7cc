"""Connects the core thread, the screens, the sheets, the tray and the ways to close. GUI thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QObject, QTimer
from PySide6.QtWidgets import QApplication

from app import startup, theme
from app.bridge import Bridge
from app.connection import NodeConnection
from app.core_thread import STOP_LIMIT_S, CoreThread
from app.long_work import Turns
from app.run_notices import RunNotices
from app.system.changeover import missing, window_of
from app.system.tray import Tray
from app.views.consent import ConsentSheet
from app.views.lifecycle import ShutdownSheet, StartProblemPage
from app.views.pairing import PairingSheet
from app.views.view import View
from app.views.welcome import WelcomeView
from app.widgets.navigation import DEVICES, RUNS, SCREENS, SETTINGS, TRAIN, ScreenEntry
from app.widgets.notice_bar import NoticeButton
from app.window import Window
from app.words.device_words import problem_of
from app.words.spoken import News, announce
from core.vocabulary.answers import RunEntry
from core.vocabulary.commands import Install, Quit, ResumeSweep, StopRun
from core.vocabulary.errors import CUT_OFF, INSTALL_ASKED, REPORT_CAME, SWEEP_CUT_OFF, Problem
from core.vocabulary.events import Event, NoticeRaised, PairingEnded, RunPlanned
from core.vocabulary.ids import DeviceId, RunId, SweepId
from core.vocabulary.state import State

if TYPE_CHECKING:
    from app.views.devices import DevicesView
    from app.views.train import TrainView

Opens = Callable[[], AbstractAsyncContextManager[NodeConnection]]
_ENDED = Problem(
    code="node-ended",
    what="Tandem was ended from outside this window.",
    fix="Press Try again to restart it.",
)


class Conductor(QObject):
    """Lives as long as the window. ``begin`` starts the core thread and fills in the screens."""

    def __init__(self, window: Window, opens: Opens, screens: Sequence[ScreenEntry] = SCREENS) -> None:
        super().__init__(window)
        self.setObjectName("conductor")
        self.window = window
        self._opens = opens
        self._screens = screens
        self.bridge = Bridge(self)
        self.core: CoreThread | None = None
        self.own = True
        self._ending = False
        self._has_core = self._again = False
        """Whether the core thread has yet to report its end; whether another one follows it."""
        self._news = News()
        self._turns = Turns(self)
        self._filling = False
        self._for_train: list[Callable[[TrainView], object]] = []
        """Calls that wait for the Train screen."""
        self._welcome: WelcomeView | None = None
        self._welcomed = False
        over = window.sheet_parent()
        self.shutdown = ShutdownSheet(over)
        self.consent = ConsentSheet(self.bridge, over)
        self.pairing = PairingSheet(self.bridge, over)
        self.tray = Tray(self)
        self._notices = RunNotices(window, self.tray, lambda: self.bridge.submit(StopRun()))
        window.offer(CUT_OFF, lambda told: NoticeButton("Resume", partial(self._resume, RunId(told.detail))))
        window.offer(
            SWEEP_CUT_OFF, lambda told: NoticeButton("Resume", partial(self._resume_sweep, told.detail))
        )
        window.offer(
            REPORT_CAME, lambda told: NoticeButton("Open report", partial(self._open_report, told.detail))
        )
        window.offer(INSTALL_ASKED, self._install_button)
        self.bridge.changed.connect(self._on_changed)
        self.bridge.opened.connect(self._on_opened)
        self.bridge.failed.connect(self._on_failed)
        self.bridge.ended.connect(self._on_ended)
        window.close_asked.connect(self.close)
        self.shutdown.stay_asked.connect(window.hide)
        self.shutdown.quit_asked.connect(self.quit)
        self.tray.open_asked.connect(window.come_forward)
        self.tray.quit_asked.connect(self._quit_from_tray)
        window.screen_changed.connect(self._on_screen)
        self.pairing.incoming.connect(self._on_pairing_asked)
        self.consent.withdrawn.connect(window.tell)
        self.consent.incoming.connect(self._on_consent_asked)
        self._allowed: set[str] = set()
        """Runs that were allowed here and have not begun."""
        self.consent.allowed.connect(self._allowed.add)

    def begin(self) -> None:
        self._start_core()
        self._fill(DEVICES)

    def close(self) -> None:
        """Closes the window, after a question if needed."""
        if self.bridge.state.busy and self.own and self._alive():
            self.window.come_forward()
            self.shutdown.ask(self.tray.there)
        else:
            self.quit()

    def quit(self, *, leaves: bool = False) -> None:
        """Hides the window, and ends the node if it is ours (``leaves``: as in ``Quit``) and the program."""
        if self._ending:
            return
        self._ending = True
        self.window.hide()
        self.tray.close()
        if not self._alive() or self.core is None:
            self._leave()
            return
        if self.own and self.bridge.state.busy:
            self.bridge.submit(Quit(leaves=True) if leaves else StopRun())
        self.core.ask_to_end()
        # The thread reports its end; this is for a thread that never ends.
        QTimer.singleShot(int(STOP_LIMIT_S * 1000), self, self._leave)

    # --- the core ------------------------------------------------------------------------------------------

    def _start_core(self) -> None:
        bridge = self.bridge
        self.core = CoreThread(self._opens, bridge.deliver, bridge.begin, bridge.fail, bridge.end)
        bridge.attach(self.core)
        self._has_core = True
        self.core.start()

    def _alive(self) -> bool:
        return self.core is not None and self.core.running

    def _on_opened(self, own: bool) -> None:
        self.own = own
        if not self._filling:
            # Not earlier: two threads that import at once block each other, and the window with them.
            self._filling = True
            for index in range(DEVICES + 1, len(self._screens)):
                self._fill(index)
        if self._welcome is None:
            self.window.show_screens()

    def _on_failed(self, problem: Problem) -> None:
        if self._ending:
            return
        for sheet in (self.shutdown, self.consent, self.pairing):
            sheet.shut()  # nobody can take its answer, and it would cover the page
        page = StartProblemPage(problem)
        page.again_asked.connect(self._start_again)
        self._welcome = None
        theme.wear(page)
        self.window.show_page(page)
        if not self.window.isVisible():
            self.window.come_forward()  # it was in the background: nobody would notice

    def _start_again(self) -> None:
        self._again = self._has_core
        if not self._again:
            self._start_core()

    def _on_ended(self) -> None:
        again, self._again, self._has_core = self._again, False, False
        if self._ending:
            self._leave()
        elif again:
            self._start_core()

    def _leave(self) -> None:
        self.window.may_close = True
        self.window.close()
        QApplication.quit()

    # --- what the state says -------------------------------------------------------------------------------

    def _on_changed(self, events: Sequence[Event], state: State) -> None:
        if self._ending:
            return
        if state.me is not None:
            theme.follow(state.me.settings.theme)
        self.window.show_state(state, events)
        self._notices.on_events(events, state)
        if any(isinstance(event, NoticeRaised) and event.problem.code == INSTALL_ASKED for event in events):
            self.window.come_forward()
        for words, urgent in self._news.of(events, state):
            announce(self.window, words, urgent=urgent)
        if self._welcome is not None:
            self._welcome.show_state(state, events)
            if any(isinstance(event, RunPlanned) for event in events):
                self._welcome.leave()
                self._show_run()
        elif state.me is not None and not self._welcomed and not state.me.settings.first_run_done:
            self._show_welcome()
        elif state.me is not None and not self._welcomed and not self.window.shows_screens:
            self.window.show_screens()  # the settings file called it the first run, but it is not
        self._welcomed = self._welcomed or state.me is not None
        begun = {event.plan.run for event in events if isinstance(event, RunPlanned)}
        if begun & self._allowed:
            self._allowed -= begun
            self._show_run()
        self.pairing.show_state(state, events)
        if self._welcome is not None and self.pairing.is_open and _paired(events):
            self.pairing.dismiss()  # the first steps report it and continue
        self.consent.show_state(state)
        if state.consents and not self.pairing.under_way:
            self.pairing.dismiss()  # a question is worth more than the news that a pairing is over
        elif self.pairing.is_open:
            self.pairing.raise_()
        self.tray.show_state(state)
        if not state.busy:
            self.shutdown.shut()
            if not self.window.isVisible() and not self.tray.there:
                # The run in the background is over, and no icon leads to the window.
                self.window.come_forward()
        if state.stopped:
            self._on_stopped()

    def _on_screen(self, index: int) -> None:
        if index == TRAIN:
            self._notices.seen()

    def _on_stopped(self) -> None:
        """Another process ended the node, over its socket."""
        if self.core is not None:
            self.core.ask_to_end()
        self._on_failed(_ENDED)

    def _on_pairing_asked(self, name: str) -> None:
        self.window.come_forward()
        self.tray.tell("Pairing", f"{name} wants to pair with this laptop.")

    def _on_consent_asked(self, name: str) -> None:
        self.window.come_forward()
        self.tray.tell("Training", f"{name} wants to train with this laptop.")

    def _quit_from_tray(self) -> None:
        if self.bridge.state.busy:
            self.window.come_forward()
        self.close()

    # --- screens -------------------------------------------------------------------------------------------

    def _fill(self, index: int) -> None:
        startup.make(self._screens[index], self.bridge, self._turns, lambda view: self._put(index, view))

    def _put(self, index: int, view: View) -> None:
        if self._ending:
            return
        self.window.fill(index, view, self.bridge.state)
        if index == TRAIN:
            self._do_on_train()
        if index == SETTINGS:
            self._connect_screens()

    def _connect_screens(self) -> None:
        from app.views.devices import DevicesView
        from app.views.runs import RunsView
        from app.views.settings import SettingsView
        from app.views.train import TrainView

        devices, settings = self.window.view(DEVICES), self.window.view(SETTINGS)
        assert isinstance(devices, DevicesView)
        assert isinstance(settings, SettingsView)
        devices.restart_asked.connect(self._restart_there)
        devices.doctor_asked.connect(lambda: self._look_for_cause(settings))
        settings.welcome_asked.connect(self._show_welcome)
        train, runs = self.window.view(TRAIN), self.window.view(RUNS)
        if isinstance(train, TrainView):
            train.devices_asked.connect(lambda device: self._show_devices(devices, device))
        if isinstance(runs, RunsView):
            runs.train_asked.connect(lambda: self.window.go_to(TRAIN))
            runs.again_asked.connect(self._run_again)
            runs.draft_asked.connect(lambda draft: self._on_train(lambda train: train.prepare(draft)))
            runs.resumed.connect(self._show_run)
            runs.live_asked.connect(self._show_run)
        if isinstance(train, TrainView) and isinstance(runs, RunsView):
            train.run_asked.connect(lambda _: self.window.go_to(RUNS))
            train.run_asked.connect(lambda run: runs.open_all([run]))

    def _show_devices(self, devices: DevicesView, device: DeviceId | None) -> None:
        self.window.go_to(DEVICES)
        if device is not None:
            devices.match(device)

    def _restart_there(self, tandem: Path) -> None:
        """The Tandem of another environment opens its window on this home as soon as this one has ended."""
        me = self.bridge.state.me
        if me is None or not self.own or self.bridge.state.busy:
            return
        if problem := missing(tandem):
            self.window.tell(problem)
        else:
            self.window.next_program = (str(window_of(tandem)), "--home", me.home)
            self.quit()

    def _show_run(self) -> None:
        """Shows a run begun on another screen of this window."""
        self._on_train(lambda train: train.show_live())

    def _resume(self, run: RunId) -> None:
        from app.views.resume import resume_cut_off

        resume_cut_off(self.bridge, run, self.window.tell)

    def _resume_sweep(self, sweep: str) -> None:
        command = ResumeSweep(sweep=SweepId(sweep))
        self.bridge.submit(command, lambda answer: self.window.tell(problem_of(answer)))

    def _install_button(self, told: Problem) -> NoticeButton:
        answer = partial(self._answer_install, told.detail)
        return NoticeButton("Install", partial(answer, allowed=True), partial(answer, allowed=False))

    def _answer_install(self, asked: str, *, allowed: bool) -> None:
        """About exactly what the notice names."""
        device, *packages = asked.split()
        command = Install(device=DeviceId(device), packages=tuple(packages), allowed=allowed)
        self.bridge.submit(command, lambda answer: self.window.tell(problem_of(answer)))

    def _open_report(self, path: str) -> None:
        """One that another laptop sent."""
        from app.views.runs import RunsView

        self.window.go_to(RUNS)
        runs = self.window.view(RUNS)
        if isinstance(runs, RunsView):
            runs.show_list()
            runs.received.head.setChecked(True)  # it stays there
            runs.not_opened.open(Path(path), "report")

    def _run_again(self, entry: RunEntry) -> None:
        self._on_train(lambda train: train.run_again(entry))

    def _on_train(self, do: Callable[[TrainView], object]) -> None:
        """Calls ``do`` now, or when the Train screen is ready."""
        self.window.go_to(TRAIN)
        self._for_train.append(do)
        self._do_on_train()

    def _do_on_train(self) -> None:
        train = cast("TrainView | None", self.window.view(TRAIN))
        if train is not None:
            waiting, self._for_train = self._for_train, []
            for do in waiting:
                do(train)

    def _look_for_cause(self, settings: object) -> None:
        from app.views.settings import SettingsView

        self.window.go_to(SETTINGS)
        if isinstance(settings, SettingsView):
            settings.examine()

    def _show_welcome(self) -> None:
        self._turns.first(self._make_welcome)

    def _make_welcome(self) -> None:
        if self._ending or not self._alive():
            return
        welcome = WelcomeView(self.bridge)
        # In separate turns: applying the theme, and laying out all its parts.
        self._turns.first(lambda: self._go_through(welcome))
        self._turns.first(lambda: theme.wear(welcome))

    def _go_through(self, welcome: WelcomeView) -> None:
        if self._ending or not self._alive():
            return
        self._welcome = welcome
        welcome.finished.connect(self._on_welcomed)
        welcome.show_state(self.bridge.state, ())
        self.window.show_page(welcome)

    def _on_welcomed(self, example: str) -> None:
        self._welcome = None
        self.window.show_screens()
        if not example:
            paired = any(device.paired for device in self.bridge.state.devices.values())
            self.window.go_to(TRAIN if paired else DEVICES)  # the screen with the next step
            return
        self._on_train(lambda train: train.train_example(example))

    def open_script(self, path: str) -> None:
        """Takes a script from the desktop for the next run, as if dropped on the Train screen."""
        self._on_train(lambda train: train.choose(path))


def _paired(events: Sequence[Event]) -> bool:
    return any(isinstance(event, PairingEnded) and event.problem is None for event in events)
