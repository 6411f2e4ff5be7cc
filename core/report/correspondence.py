"""Sends a run's report to a paired laptop, and stores reports received. On the core loop; file access is in a
thread.

Security invariant: a received report is a page made elsewhere. It is embedded in a page of this laptop that
blocks the network and other files, and only the user opens it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from html import escape, unescape
from pathlib import Path

from core.home.private_file import write_atomically
from core.link.hub import Links
from core.project.files import disk_use
from core.report import problems
from core.runtime.background import Background
from core.runtime.regular_file import NotRegular, open_regular
from core.vocabulary.answers import ReceivedReport, RunEntry
from core.vocabulary.errors import TandemError
from core.vocabulary.events import Event, NoticeRaised
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.peer_messages import ReportSent
from core.vocabulary.run_folder import REPORT
from core.vocabulary.state import State
from core.vocabulary.text import fit_name, plain

MOST_PACKED_BYTES, MOST_BYTES = 500_000, 8_000_000
"""Limits of a report's page: compressed, in one message; and unpacked."""
MOST_KEPT = 20
"""Reports kept from other laptops; the oldest are deleted."""
SENT_APART_S, COME_APART_S = 10.0, 5.0
"""Least time between two reports to the same laptop, and from the same laptop."""
_HEAD_BYTES = 4096
"""Bytes at the beginning of a stored page that are searched for the script and the sender."""
_ABOUT = re.compile(r'<meta name="(script|sender)" content="([^"]*)">')
_log = logging.getLogger(__name__)

_AROUND = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<meta name="script" content="{script}"><meta name="sender" content="{name}">
<title>{title}</title>
<style>html,body{{margin:0;height:100%}}
body{{display:flex;flex-direction:column;font:15px system-ui,sans-serif}}
p{{margin:0;padding:8px 20px;background:#e9edf7;color:#20242c}}iframe{{flex:1;border:0}}</style></head>
<body><p>{words}</p>
<iframe sandbox="allow-scripts" title="Report" srcdoc="{page}"></iframe></body></html>
"""


class Reports:
    """One per node. ``folder``: for received reports. ``clock``: seconds, monotonic."""

    def __init__(
        self,
        folder: Path,
        links: Links,
        state: Callable[[], State],
        emit: Callable[[Event], None],
        background: Background,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._links = links
        self._state = state
        self._emit = emit
        self._background = background
        self._clock = clock
        self._sent: dict[DeviceId, float] = {}
        self._came: dict[DeviceId, float] = {}

    async def send(self, entry: RunEntry, device: DeviceId) -> None:
        """Send a run's report. If the receiver is away, its link delivers the report later. Raises
        ``TandemError``."""
        known = self._state().devices.get(device)
        if known is None or not (known.paired and known.linked):
            raise TandemError.of(problems.not_connected(known.shown_name if known else short(device)))
        now_s = self._clock()
        if now_s - self._sent.get(device, -SENT_APART_S) < SENT_APART_S:
            raise TandemError.of(problems.just_sent(known.shown_name, SENT_APART_S))
        packed = await asyncio.to_thread(_pack, Path(entry.folder) / REPORT if entry.folder else None)
        self._sent[device] = now_s
        if not self._links.send(device, ReportSent(script=plain(entry.script, 100), page=packed)):
            raise TandemError.of(problems.not_connected(known.shown_name))

    def on_sent(self, device: DeviceId, sent: ReportSent) -> None:
        """Store a report from a paired laptop, unless another came just before."""
        now_s = self._clock()
        if now_s - self._came.get(device, -COME_APART_S) < COME_APART_S:
            _log.warning("%s sends reports too often: dropped one", short(device))
            return
        self._came[device] = now_s
        self._background.start("storing a report", self._keep(device, sent))

    async def _keep(self, device: DeviceId, sent: ReportSent) -> None:
        known = self._state().devices.get(device)
        name = fit_name(known.shown_name) if known is not None else short(device)
        script = plain(sent.script, 60) or "a script"
        try:
            path = await asyncio.to_thread(_keep, self._folder, sent.page, name, script)
        except (zlib.error, ValueError) as error:
            _log.warning("the report that %s sent is not readable: %s", short(device), error)
        except OSError as error:
            self._emit(NoticeRaised(problem=problems.not_kept(name, script, error)))
        else:
            self._emit(NoticeRaised(problem=problems.came(name, script, path)))

    async def kept(self) -> tuple[ReceivedReport, ...]:
        """The received reports, newest first."""
        return await asyncio.to_thread(_kept, self._folder)

    async def delete(self, path: str) -> None:
        """Delete a received report, and no other file. Raises ``TandemError``."""
        await asyncio.to_thread(_delete, self._folder, path)

    async def size(self) -> int:
        """Size of all received reports, in bytes."""
        return (await asyncio.to_thread(disk_use, self._folder)).total

    async def clear(self) -> int:
        """Delete all received reports. Returns their size in bytes."""
        return await asyncio.to_thread(_trim, self._folder, 0)


def _pack(path: Path | None) -> bytes:
    """The page, compressed. Raises ``TandemError``."""
    try:
        if path is None:
            raise FileNotFoundError
        with open_regular(path) as file:  # another's script may have put a link there
            page = file.read(MOST_BYTES + 1)
    except (NotRegular, OSError) as error:
        raise TandemError.of(problems.no_report()) from error
    packed = zlib.compress(page, 9)
    if len(page) > MOST_BYTES or len(packed) > MOST_PACKED_BYTES:
        raise TandemError.of(problems.too_large(str(path)))
    return packed


def unpacked(packed: bytes) -> str:
    """The page. Raises ``zlib.error`` and ``ValueError``: another laptop may send anything."""
    if len(packed) > MOST_PACKED_BYTES:
        raise ValueError("it is too large")
    unpacker = zlib.decompressobj()
    page = unpacker.decompress(packed, MOST_BYTES)
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError("it is too large, or incomplete")
    return page.decode("utf-8")


def contained(page: str, name: str, script: str) -> str:
    """This laptop's page around the other one's: the frame has an origin of its own, and inherits the policy
    against loading anything (HTML, policy containers)."""
    words = (
        f"{name} sent this report of {script}. The page was made there. It can reach neither the network nor "
        "files of this laptop."
    )
    return _AROUND.format(
        script=escape(script),
        name=escape(name),
        title=escape(f"{script}, from {name}"),
        words=escape(words),
        page=escape(page),
    )


def _keep(folder: Path, packed: bytes, name: str, script: str) -> Path:
    text = contained(unpacked(packed), name, script)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _trim(folder, MOST_KEPT - 1)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}.html"
    write_atomically(path, text.encode())
    return path


def _kept(folder: Path) -> tuple[ReceivedReport, ...]:
    found = []
    for path in sorted(folder.glob("*.html"), reverse=True):
        with suppress(NotRegular, OSError), open_regular(path) as file:
            came_s = os.fstat(file.fileno()).st_mtime
            said = dict(_ABOUT.findall(file.read(_HEAD_BYTES).decode(errors="replace")))
            script, sender = (plain(unescape(said.get(name, "")), 60) for name in ("script", "sender"))
            # Pages that an earlier Tandem stored name neither.
            found.append(
                ReceivedReport(path=str(path), script=script or path.stem, sender=sender, came_s=came_s)
            )
    return tuple(found)


def _delete(folder: Path, path: str) -> None:
    if all(report.path != path for report in _kept(folder)):
        raise TandemError.of(problems.not_received())
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as error:
        raise TandemError.of(problems.not_deleted(error)) from error


def _trim(folder: Path, left: int) -> int:
    """Delete all reports except the newest ``left``. Returns the bytes freed."""
    freed = 0
    for path in sorted(folder.glob("*.html"), reverse=True)[left:]:
        freed += path.stat().st_size
        path.unlink()
    return freed
