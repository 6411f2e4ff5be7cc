"""A bare QMainWindow of the same size: reports its first paint, and ends."""

import time

from PySide6.QtCore import QEvent, QSize, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow


class Bare(QMainWindow):
    told = False

    def event(self, event: QEvent) -> bool:
        done = super().event(event)
        if event.type() == QEvent.Type.Paint and not self.told:
            self.told = True
            QTimer.singleShot(0, after_first_paint)
        return done


def after_first_paint() -> None:
    print(time.process_time(), flush=True)
    QApplication.quit()


app = QApplication([])
window = Bare()
window.resize(QSize(1120, 760))
window.show()
app.exec()
