"""The node's log: ``logs/tandem.log`` in the home, 1 MB a file, three older ones kept. No secrets.

Several nodes may share one process (the demo, tests): messages logged in the context of one node go only to
that node's log. A separate thread writes the lines, so a slow disk never blocks the loop.
"""

from __future__ import annotations

import contextvars
import io
import logging
import logging.handlers
import os
import queue
import re
from pathlib import Path

BYTES = 1_000_000
KEPT = 3
_current: contextvars.ContextVar[str] = contextvars.ContextVar("tandem_log", default="")
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SECRET = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S)


class Log:
    """One node's log. ``enter`` assigns this context's further messages to this node."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tandem.log"
        self._key = str(self.path)
        file = _PrivateFile(self.path, maxBytes=BYTES, backupCount=KEPT, encoding="utf-8", delay=True)
        file.setFormatter(_WithoutSecrets("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        lines: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
        self._queued = logging.handlers.QueueHandler(lines)
        # The file's thread formats: QueueHandler would otherwise render tracebacks on the loop.
        self._queued.prepare = lambda record: record  # type: ignore[method-assign]
        self._queued.addFilter(self._is_ours)
        self._listener = logging.handlers.QueueListener(lines, file)
        self._file = file

    def open(self) -> None:
        logger = logging.getLogger()
        logger.addHandler(self._queued)
        for package in ("core", "app"):
            logging.getLogger(package).setLevel(logging.INFO)
        self._listener.start()

    def close(self) -> None:
        """Write everything logged so far to the file, and close it."""
        logging.getLogger().removeHandler(self._queued)
        self._listener.stop()
        self._file.close()

    def enter(self) -> contextvars.Token[str]:
        return _current.set(self._key)

    @staticmethod
    def leave(token: contextvars.Token[str]) -> None:
        _current.reset(token)

    def _is_ours(self, record: logging.LogRecord) -> bool:
        # A thread that a library started belongs to no node: every log gets its messages.
        return _current.get() in ("", self._key)


class _PrivateFile(logging.handlers.RotatingFileHandler):
    """Readable only by its user; a full disk costs lines, never the node."""

    def _open(self) -> io.TextIOWrapper:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:
        pass


class _WithoutSecrets(logging.Formatter):
    """Also removes what others could inject into a line: line breaks, or codes that control a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], record.message)
        return super().formatMessage(record)

    def format(self, record: logging.LogRecord) -> str:
        return _SECRET.sub("[private key left out]", super().format(record))
