"""The tray icon, if the desktop has a tray: Tandem's state, a small menu, notices."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QMenu, QSystemTrayIcon

from app import theme
from app.widgets.icons import APPLICATION, image
from app.words import run_words, sweep_words
from core.vocabulary.phases import Failed, Finished, Planning, Preparing, Starting
from core.vocabulary.state import State
from core.vocabulary.text import plain

SIZE = 64
ASK_EVERY_S = 5.0
_NO_MARKUP = str.maketrans({"<": "‹", ">": "›", "&": "+"})
"""Some desktops parse markup in notices."""


class Tray(QObject):
    """``open_asked`` and ``quit_asked`` come from the icon and its menu. ``clock``: seconds, monotonic."""

    open_asked = Signal()
    quit_asked = Signal()

    def __init__(self, parent: QObject | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(parent)
        self._clock = clock
        self._asked_s: float | None = None
        self._available = False
        self._icon: QSystemTrayIcon | None = None
        self._menu: QMenu | None = None
        self._shown: tuple[str, str] | None = None
        self._ended: object = None
        self._sweep = ""

    @property
    def there(self) -> bool:
        """Checked each time: a hidden window must be reachable."""
        return self._icon is not None and QSystemTrayIcon.isSystemTrayAvailable()

    def show_state(self, state: State) -> None:
        """The tray follows its setting, and the desktop's tray."""
        wanted = state.me is not None and state.me.settings.tray and self._desktop_has_one()
        if wanted and self._icon is None:
            self._make()
        elif not wanted:
            self.close()
        self._notice_end(state)
        if self._icon is None:
            return
        words, colour = _state_of(state)
        if (words, colour) != self._shown:
            self._shown = (words, colour)
            self._icon.setIcon(_drawn(colour))
            self._icon.setToolTip(f"Tandem: {words}")

    def tell(self, title: str, words: str) -> None:
        """A desktop notice; nothing without a tray."""
        if self._icon is not None:
            self._icon.showMessage(_clean(title), _clean(words), _drawn(""))

    def close(self) -> None:
        if self._icon is not None:
            self._icon.hide()
            self._icon.deleteLater()
            self._icon = None
            self._shown = None

    def _desktop_has_one(self) -> bool:
        """The desktop's tray may come and go. Asking is a D-Bus call that the GUI thread waits for."""
        now_s = self._clock()
        if self._asked_s is None or now_s - self._asked_s >= ASK_EVERY_S:
            self._asked_s = now_s
            self._available = QSystemTrayIcon.isSystemTrayAvailable()
        return self._available

    def _make(self) -> None:
        self._menu = QMenu()
        self._menu.addAction("Open Tandem", self.open_asked.emit)
        self._menu.addAction("Quit", self.quit_asked.emit)
        self._icon = QSystemTrayIcon(_drawn(""), self)
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._on_activated)
        self._icon.messageClicked.connect(self.open_asked)
        self._icon.show()

    def _on_activated(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        if reason != QSystemTrayIcon.ActivationReason.Context:
            self.open_asked.emit()

    def _notice_end(self, state: State) -> None:
        """A run's or a sweep's end is announced once, and only if it was seen under way; no trial's is."""
        run, sweep = state.run, state.sweep
        if sweep is not None and (sweep.under_way or self._sweep == sweep.sweep):
            self._sweep = sweep.sweep if sweep.under_way else ""
            if not sweep.under_way:
                self.tell(f"Trials {sweep.phase}", f"{sweep.script}: {sweep_words.outcome_words(sweep)}")
        if run is None:
            self._ended = None
        elif not run.over:
            self._ended = run.plan.run
        elif self._ended == run.plan.run:
            self._ended = None
            if run.plan.trial is None and isinstance(run.phase, Finished | Failed):
                why = f": {run.phase.problem.what}" if isinstance(run.phase, Failed) else ""
                outcome = run_words.outcome_words(run.phase, run.summary)
                self.tell(f"Training {outcome}", f"{run.plan.script}{why}")


def _state_of(state: State) -> tuple[str, str]:
    colours = theme.colours()
    if state.pairing is not None and state.pairing.incoming and state.pairing.stage == "comparing":
        return f"{plain(state.pairing.name, 40)} wants to pair", colours.warning
    if state.consents:
        return f"{plain(state.consents[0].name, 40)} asks to train", colours.warning
    if state.busy and state.run is not None:
        early = isinstance(state.run.phase, Planning | Preparing | Starting)
        return ("a run is starting" if early else "training"), colours.good
    if state.run is not None and isinstance(state.run.phase, Failed):
        return "the last run failed", colours.bad
    return "ready", ""


def _drawn(colour: str) -> QIcon:
    """The icon, with a dot of ``colour`` in its corner."""
    pixmap = QPixmap.fromImage(image(APPLICATION.read_bytes(), SIZE))
    if colour:
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor("#ffffff"))
        painter.drawEllipse(QRectF(SIZE * 0.6, SIZE * 0.6, SIZE * 0.4, SIZE * 0.4))
        painter.setBrush(QColor(colour))
        painter.drawEllipse(QRectF(SIZE * 0.65, SIZE * 0.65, SIZE * 0.3, SIZE * 0.3))
        painter.end()
    return QIcon(pixmap)


def _clean(words: str) -> str:
    return plain(words, 200).translate(_NO_MARKUP)
