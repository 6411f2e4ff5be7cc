"""One window per home: a second start brings the first window to the front, then ends.

A lock file decides who is first (Qt sees when its process is gone), a local socket named after the home
carries the request. GUI thread; every wait has a limit.
"""

from __future__ import annotations

import binascii
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QLockFile, QObject, QThread, Signal

if TYPE_CHECKING:
    from PySide6.QtNetwork import QLocalServer

ANSWER_LIMIT_MS = 5_000
RETRY_MS = 50
LONGEST_FOLDER = 68
"""Bytes; a Unix socket's path is short (103 on macOS), and the name takes 31."""
ANSWER = b"here\n"
LONGEST_SCRIPT = 4096
"""Bytes of a path."""


class SingleInstance(QObject):
    """``claim`` first, then ``listen``; ``asked_to_front`` comes when somebody starts the program again,
    followed by ``script_given`` with the path of a script to open."""

    asked_to_front = Signal()
    script_given = Signal(str)

    def __init__(
        self, home: Path, parent: QObject | None = None, *, answer_limit_ms: int = ANSWER_LIMIT_MS
    ) -> None:
        super().__init__(parent)
        self._answer_limit_ms = answer_limit_ms
        path = os.fsencode(home)
        # A CRC suffices for one user's few homes; importing hashlib would take longer than all the rest.
        name = f"tandem-window-{binascii.crc32(path):08x}{binascii.crc32(path[::-1]):08x}"
        folder = _folder()
        self._address = str(folder / name) if os.name == "posix" else name
        self._lock = QLockFile(str(folder / f"{name}.lock"))
        self._lock.setStaleLockTime(0)
        self._server: QLocalServer | None = None

    def claim(self, script: str = "") -> bool:
        """True: this is the first. False: another one exists, came to the front and got ``script``.

        A window that does not answer in time is ignored: the home's own lock still prevents a second node.
        """
        return bool(self._lock.tryLock(0)) or not self._ask_first(script)

    def listen(self) -> None:
        """Accept requests from a second start; its imports can wait for the first paint."""
        from PySide6.QtNetwork import QLocalServer

        QLocalServer.removeServer(self._address)  # a crashed window's socket file
        server = QLocalServer(self)
        server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        server.newConnection.connect(self._on_asked)
        if server.listen(self._address):
            self._server = server

    def release(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._lock.unlock()

    def _ask_first(self, script: str) -> bool:
        from PySide6.QtNetwork import QLocalSocket

        socket = QLocalSocket()
        for _ in range(self._answer_limit_ms // RETRY_MS):
            socket.connectToServer(self._address)
            if socket.waitForConnected(self._answer_limit_ms):
                break
            QThread.msleep(RETRY_MS)  # it has the lock and will listen once it has painted
        else:
            return False
        # Read first: writing to a first window that has answered and is closing would lose its answer.
        came = socket.bytesAvailable() > 0 or socket.waitForReadyRead(self._answer_limit_ms)
        answered = came and socket.readAll().data() == ANSWER
        if answered and script:
            socket.write(os.fsencode(script) + b"\n")
            socket.waitForBytesWritten(self._answer_limit_ms)
        socket.disconnectFromServer()
        return bool(answered)

    def _on_asked(self) -> None:
        server = self._server
        if server is None:
            return
        socket = server.nextPendingConnection()
        # Not a closure: it would hold the socket, which the server owns, and outlive both.
        socket.readyRead.connect(self._on_script)
        socket.disconnected.connect(socket.deleteLater)
        socket.write(ANSWER)
        socket.flush()
        self.asked_to_front.emit()

    def _on_script(self) -> None:
        from PySide6.QtNetwork import QLocalSocket

        socket = self.sender()
        assert isinstance(socket, QLocalSocket)
        if socket.canReadLine():
            path = bytes(socket.readLine(LONGEST_SCRIPT).data()).rstrip(b"\n")
            self.script_given.emit(os.fsdecode(path))
        elif socket.bytesAvailable() > LONGEST_SCRIPT:
            socket.abort()


def _folder() -> Path:
    """A folder that only this user can enter: nobody else may take the name first."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    short = len(os.fsencode(runtime)) <= LONGEST_FOLDER
    if runtime and short and os.access(runtime, os.W_OK):
        return Path(runtime)
    if os.name != "posix":
        return Path(tempfile.gettempdir())
    user = 0
    if sys.platform != "win32":
        user = os.getuid()
    folder = Path(tempfile.gettempdir()) / f"tandem-{user}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if found.st_uid == user and found.st_mode & 0o777 == 0o700 and not folder.is_symlink():
            return folder
    except OSError:
        pass
    return Path(tempfile.mkdtemp(prefix="tandem-"))
