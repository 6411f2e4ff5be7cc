"""One laptop of the next run: its role, its share. Drag a row onto another to swap roles."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QMimeData, QPoint, Qt, Signal
from PySide6.QtGui import QDrag, QDragEnterEvent, QDragLeaveEvent, QDropEvent, QIntValidator, QMouseEvent
from PySide6.QtWidgets import QApplication, QComboBox, QLineEdit

from app.widgets.card import Card, column, row
from app.widgets.inputs import unscrolled
from app.widgets.labels import ElidedLabel, Label, name_for_readers
from core.vocabulary.ids import DeviceId
from core.vocabulary.plan import Role

MIME = "application/x-tandem-device"
MOST_SHARE = 1_000_000
WORDS = {
    Role.CHIEF: "chief",
    Role.WORKER: "worker",
    Role.PS: "parameter server",
    Role.EVALUATOR: "evaluator",
    Role.NONE: "not in this run",
}
MANAGED = (Role.CHIEF, Role.WORKER, Role.NONE)
OWN = (Role.CHIEF, Role.WORKER, Role.PS, Role.EVALUATOR, Role.NONE)
Roles = tuple[Role, ...]


class RoleRow(Card):
    """``roles_chosen``, ``share_chosen`` and ``dropped`` (another device's id) come from the user."""

    roles_chosen = Signal(tuple)
    share_chosen = Signal(int)
    dropped = Signal(str)

    def __init__(self, device: DeviceId) -> None:
        super().__init__()
        self.device = device
        self.setAcceptDrops(True)
        self._press: QPoint | None = None
        self._choices: list[Roles] = []
        self.name = ElidedLabel("", "heading")
        self.about = ElidedLabel("", "faint")
        self.role = unscrolled(QComboBox())
        self.role.setObjectName("role")
        self.role.activated.connect(self._on_role)
        self.share = QLineEdit()
        self.share.setObjectName("share")
        self.share.setValidator(QIntValidator(0, MOST_SHARE, self.share))
        self.share.setFixedWidth(self.fontMetrics().averageCharWidth() * 12)
        self.share.editingFinished.connect(self._on_share)
        self.part = Label("", "faint")
        self._showing = False
        self._share = ""
        names = column(self.name, self.about, spacing=2)
        line = row(names, self.part, self.share, self.role)
        line.setStretchFactor(names, 1)
        self.add(line)

    def show_device(self, name: str, about: str) -> None:
        self.name.say(name)
        self.about.say(about)
        name_for_readers(self, name, about)
        name_for_readers(self.role, f"Role of {name}")
        name_for_readers(self.share, f"Share of {name}")

    def show_roles(self, roles: Roles, *, own: bool, able: bool) -> None:
        """``own``: the script brings its strategy, so every role is possible. ``able``: it can take part."""
        choices: list[Roles] = [(role,) for role in (OWN if own else MANAGED)]
        if roles and roles not in choices:
            choices.insert(0, roles)
        self._showing = True
        if choices != self._choices:
            self._choices = choices
            self.role.clear()
            self.role.addItems([" + ".join(WORDS[role] for role in each) for each in choices])
        self.role.setCurrentIndex(choices.index(roles) if roles else -1)
        self.role.setEnabled(able)
        self._showing = False

    def show_share(self, share: int | None, part: str, by_hand: bool) -> None:
        """``part`` of each batch, in words; ``""`` for a laptop that computes none of it."""
        self.share.setVisible(by_hand and share is not None)
        # Keep the value somebody is typing.
        if share is not None and not self.share.hasFocus():
            self._share = str(share)
            self.share.setText(self._share)
        self.part.say(part)

    def _on_role(self, index: int) -> None:
        if not self._showing:
            self.roles_chosen.emit(self._choices[index])

    def _on_share(self) -> None:
        if self.share.text() != self._share:
            self._share = self.share.text()
            self.share_chosen.emit(int(self._share))

    # --- dragging ------------------------------------------------------------------------------------------

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._press = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._press is None:
            return
        if (event.position().toPoint() - self._press).manhattanLength() < QApplication.startDragDistance():
            return
        self._press = None
        drag = QDrag(self)
        data = QMimeData()
        data.setData(MIME, QByteArray(self.device.encode()))
        drag.setMimeData(data)
        drag.setPixmap(self.grab())
        drag.exec(Qt.DropAction.MoveAction)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasFormat(MIME) and self._dragged(event) != self.device:
            event.acceptProposedAction()
            self.choose(True)

    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.choose(False)

    def dropEvent(self, event: QDropEvent) -> None:
        self.choose(False)
        event.acceptProposedAction()
        self.dropped.emit(self._dragged(event))

    @staticmethod
    def _dragged(event: QDropEvent) -> str:
        return bytes(event.mimeData().data(MIME).data()).decode(errors="replace")
