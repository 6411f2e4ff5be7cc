"""A file manager's window with one folder in it, to drag from.

    python -m tests.tour.drag_source FOLDER X Y

The upper left corner is at X, Y. Prints *ready* once the window can be seen. It must stay until the target
has asked for what was dropped.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QDrag, QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QApplication, QLabel

SIZE = (200, 60)


class Folder(QLabel):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setFixedSize(*SIZE)
        self._seen = False

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if not self._seen:
            self._seen = True
            print("ready", flush=True)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        drag, data = QDrag(self), QMimeData()
        data.setUrls([QUrl.fromLocalFile(self.path)])
        drag.setMimeData(data)
        drag.exec(Qt.DropAction.CopyAction)


def main(path: str, x: str, y: str) -> int:
    app = QApplication(["files"])
    folder = Folder(path)
    folder.setWindowTitle("Files")
    folder.move(int(x), int(y))
    folder.show()
    return app.exec()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
