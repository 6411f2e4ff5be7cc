"""A file manager's window with one folder in it, to drag from.

    python -m tests.tour.drag_source FOLDER X Y

The upper left corner is at X, Y. Prints *ready* once the window is on the screen.
"""

from __future__ import annotations

import sys

from PySide6.QtCore import QMimeData, Qt, QTimer, QUrl
from PySide6.QtGui import QDrag, QMouseEvent
from PySide6.QtWidgets import QApplication, QLabel

SIZE = (200, 60)


class Folder(QLabel):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setFixedSize(*SIZE)

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
    QTimer.singleShot(0, lambda: print("ready", flush=True))
    return app.exec()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
