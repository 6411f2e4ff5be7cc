"""A desktop's tray without a desktop: takes the icons of programs, and tells on stdout who came.

    python -m tests.tour.tray_host

Speaks for the session's bus: ``org.kde.StatusNotifierWatcher``, as a panel does. The first line says *ready*,
each further one the bus name of a program whose icon came.
"""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QCoreApplication
from PySide6.QtDBus import QDBusConnection, QDBusMessage, QDBusVariant, QDBusVirtualObject

NAME = "org.kde.StatusNotifierWatcher"
PATH = "/StatusNotifierWatcher"
_PROPERTIES = {"IsStatusNotifierHostRegistered": True, "ProtocolVersion": 0}
_FACE = f"""
<interface name="{NAME}">
  <method name="RegisterStatusNotifierItem"><arg name="service" type="s" direction="in"/></method>
  <property name="IsStatusNotifierHostRegistered" type="b" access="read"/>
  <property name="ProtocolVersion" type="i" access="read"/>
</interface>
"""


class Tray(QDBusVirtualObject):
    def introspect(self, path: str) -> str:
        return _FACE

    def handleMessage(self, message: QDBusMessage, connection: QDBusConnection) -> bool:
        match message.member(), message.arguments():
            case "RegisterStatusNotifierItem", [str()]:
                tell(message.service())
                return connection.send(message.createReply())
            case "Get", [str(), str(name)] if name in _PROPERTIES:
                return connection.send(message.createReply(QDBusVariant(_PROPERTIES[name])))
        return False


def tell(words: str) -> None:
    os.write(1, words.encode() + b"\n")


def main() -> int:
    app = QCoreApplication([])
    bus = QDBusConnection.sessionBus()
    tray = Tray()
    if not bus.registerVirtualObject(PATH, tray) or not bus.registerService(NAME):
        print(bus.lastError().message(), file=sys.stderr)
        return 1
    tell("ready")
    return app.exec()


if __name__ == "__main__":
    sys.exit(main())
