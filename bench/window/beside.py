"""A program that only ticks: how long the machine itself makes a thread wait meanwhile.

Ends with its stdin and then prints the seconds of its longest gap.
"""

import sys

from PySide6.QtCore import QCoreApplication, QSocketNotifier

from bench.window.watchdog import Watchdog

app = QCoreApplication(sys.argv)
watchdog = Watchdog(app)
stdin = QSocketNotifier(0, QSocketNotifier.Type.Read)
stdin.activated.connect(app.quit)
app.exec()
print(watchdog.end()[0].seconds)
