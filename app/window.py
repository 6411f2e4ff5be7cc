"""The one window: navigation on the left, one screen at a time on the right, notices above it.

Imports nothing of the core, and not ``Qt`` with its hundred enums, so that the first paint comes immediately;
the screens are filled in afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QMargins, QSize, Signal
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QApplication,
    QHBoxLayout,
    QLabel,
    QMainWindow,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app import theme
from app.widgets.navigation import Navigation, ScreenEntry

if TYPE_CHECKING:
    from app.views.view import View
    from app.widgets.notice_bar import NoticeBar, NoticeButton
    from core.vocabulary.errors import Problem
    from core.vocabulary.events import Event
    from core.vocabulary.state import State


SIZE = (1120, 760)
"""If it fits on the screen."""
FRAME_LINES = 2
"""Height of a title bar, which a window knows only once shown, in lines of text."""


class Window(QMainWindow):
    """``close_asked`` leaves the decision to its owner. ``painted`` comes once, after the first paint."""

    close_asked = Signal()
    painted = Signal()
    screen_changed = Signal(int)

    def __init__(self, entries: tuple[ScreenEntry, ...], *, first_run: bool = False) -> None:
        """``first_run``: the first steps come once they are loaded; screens would only flash by before
        them."""
        super().__init__()
        self.setWindowTitle("Tandem")
        self.setMinimumSize(QSize(720, 480))
        self._fit_screen()
        self.may_close = False
        self.next_program: tuple[str, ...] = ()
        """The command to start when this program has ended."""
        self._painted = False
        self._views: dict[int, View] = {}
        self._notices: NoticeBar | None = None
        self._told: Problem | None = None
        self._offer: NoticeButton | None = None
        self._noticed: tuple[Problem, ...] = ()
        self._offers: dict[str, Callable[[Problem], NoticeButton]] = {}
        self.navigation = Navigation(entries)
        theme.wear(self.navigation)
        self._screens = QStackedWidget()
        self._places: list[QWidget] = [QWidget() for _ in entries]
        for place in self._places:
            self._screens.addWidget(place)
        right = QWidget()
        self._right = QVBoxLayout(right)
        self._right.setContentsMargins(0, 0, 0, 0)
        self._right.setSpacing(0)
        self._right.addWidget(self._screens, 1)
        body = QWidget()
        layout = QHBoxLayout(body)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.navigation)
        layout.addWidget(right, 1)
        self._pages = QStackedWidget()
        self._others: list[QWidget] = []
        self._pages.addWidget(body)
        self._body = body
        self.setCentralWidget(self._pages)
        if first_run:
            welcome = QLabel("Welcome to Tandem")
            welcome.setProperty("kind", "title")
            welcome.setMargin(2 * theme.GAP)
            theme.wear(welcome)
            self.show_page(welcome)
        self.navigation.chosen.connect(self.go_to)
        for index in range(len(entries)):
            # A shortcut of the body: inactive while another page replaces the body.
            shortcut = QShortcut(QKeySequence(f"Ctrl+{index + 1}"), body)
            shortcut.activated.connect(lambda index=index: self._by_key(index))
        self.navigation.show_current(0)

    # --- screens -------------------------------------------------------------------------------------------

    def fill(self, index: int, view: View, state: State) -> None:
        """Puts a screen into its empty place. Its pieces may wear the theme already."""
        from app.widgets.tab_order import tab_as_seen

        for piece in view.pieces:
            if not piece.styleSheet():
                theme.wear(piece)
        empty = self._places[index]
        current = self._screens.currentIndex()
        self._screens.insertWidget(index, view)
        self._screens.removeWidget(empty)
        empty.deleteLater()
        self._places[index] = view
        self._screens.setCurrentIndex(current)
        self._views[index] = view
        view.show_state(state, ())
        tab_as_seen(view)

    def view(self, index: int) -> View | None:
        """None until filled in."""
        return self._views.get(index)

    @property
    def current(self) -> int:
        return self._screens.currentIndex()

    def go_to(self, index: int) -> None:
        """Brings a screen to the front and focuses it."""
        changed = index != self.current
        self.navigation.show_current(index)
        self._screens.setCurrentIndex(index)
        self._places[index].setFocus()
        if changed:
            self.screen_changed.emit(index)

    def show_state(self, state: State, events: Sequence[Event]) -> None:
        for view in self._views.values():
            view.show_state(state, events)
        self._noticed = state.notices
        self._show_notices()

    def tell(self, problem: Problem | None, offer: NoticeButton | None = None) -> None:
        """Shown above every screen, beside the node's notices; None removes it."""
        self._told, self._offer = problem, offer
        self._show_notices()

    def offer(self, code: str, offer: Callable[[Problem], NoticeButton]) -> None:
        """Sets the button and action of the node's notices with this code."""
        self._offers[code] = offer

    def _show_notices(self) -> None:
        notices = (*self._noticed, *((self._told,) if self._told is not None else ()))
        if notices or self._notices is not None:
            offers = {each: self._offers[each.code](each) for each in notices if each.code in self._offers}
            if self._told is not None and self._offer is not None:
                offers[self._told] = self._offer
            self._notice_bar().show_notices(notices, offers)

    def _notice_bar(self) -> NoticeBar:
        if self._notices is None:
            from app.widgets.notice_bar import NoticeBar

            self._notices = NoticeBar()
            theme.wear(self._notices)
            self._right.insertWidget(0, self._notices)
        return self._notices

    @property
    def shows_screens(self) -> bool:
        """False while a page replaces them."""
        return self._pages.currentWidget() is self._body

    # --- pages and sheets ----------------------------------------------------------------------------------

    def show_page(self, page: QWidget) -> None:
        """Replaces navigation and screens: the first steps, or why nothing works. It wears the theme."""
        if page not in self._others:
            self._others.append(page)
            self._pages.addWidget(page)
        self._pages.setCurrentWidget(page)
        page.setFocus()

    def show_screens(self) -> None:
        """Returns to navigation and screens; other pages are deleted."""
        self._pages.setCurrentWidget(self._body)
        while self._others:
            page = self._others.pop()
            self._pages.removeWidget(page)
            page.deleteLater()

    def sheet_parent(self) -> QWidget:
        """The parent of sheets: they cover everything."""
        return self._pages

    def _by_key(self, index: int) -> None:
        from app.widgets.sheet import Sheet

        if not any(sheet.is_open for sheet in self._pages.findChildren(Sheet)):
            self.go_to(index)

    # --- the window itself ---------------------------------------------------------------------------------

    def _fit_screen(self) -> None:
        """``SIZE``, or as much as fits beside the desktop's panels and a title bar."""
        screen = self.screen().availableGeometry()
        room = screen.size().shrunkBy(QMargins(0, 0, 0, self.fontMetrics().height() * FRAME_LINES))
        self.resize(QSize(*SIZE).boundedTo(room))
        if room.height() < SIZE[1] or room.width() < SIZE[0]:
            self.move(screen.topLeft())

    def come_forward(self) -> None:
        """Raises the window, also from the tray; asks for attention if the system prevents that."""
        if self.isMinimized():
            self.showNormal()
        self.show()
        self.raise_()
        self.activateWindow()
        QApplication.alert(self)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Qt also calls this if the focused widget was hidden or disabled. Then the focus goes to the
        screen: the next button may be one that ends a run."""
        left = self.focusWidget()
        if left is None or (left.isVisible() and left.isEnabled()):
            return super().focusNextPrevChild(forward)
        page = self._others[-1] if self._others else self._places[self.current]
        page.setFocus()
        return True

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.may_close:
            event.accept()
        else:
            event.ignore()
            self.close_asked.emit()

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() == QEvent.Type.Paint and not self._painted:
            self._painted = True
            self.painted.emit()
        return handled
