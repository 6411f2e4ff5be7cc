"""The list of all runs: an index in SQLite over the run folders, made anew from them where it is broken.

Blocks: every call is made on the writer's thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from shutil import rmtree
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from core.home.private_file import write_atomically
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.commands import MOST_NAME, MOST_NOTE
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import RunId
from core.vocabulary.paths import shown
from core.vocabulary.phases import Failed, ended
from core.vocabulary.run_folder import DELETED, SUMMARY, is_run_id

SCHEMA = 1
FILE = "history.db"
MOST_NAMED = 3

# The disk or another program is in the way: the index is as good as it was.
_NO_DAMAGE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
}

T = TypeVar("T")

_MAKE = f"""
CREATE TABLE IF NOT EXISTS runs (run TEXT PRIMARY KEY, started_s REAL NOT NULL, entry BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS by_time ON runs (started_s);
PRAGMA user_version = {SCHEMA};
"""


class History:
    """``folder`` holds the index and one folder a run. The folders are what counts; the index can be lost."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index: sqlite3.Connection | None = None
        self._closed = False
        self._our_own: set[RunId] = set()
        self._owed: dict[RunId, RunEntry] = {}
        self.problem: Problem | None = None
        """What a person should know of it: that it was broken, has gaps, or cannot be used."""

    def open(self) -> None:
        """Open or make anew; runs that were under way when Tandem ended are marked as failed."""
        self.problem = None
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                self._connect()
                entries = self._all()
            except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
                self._rebuild(error)
                entries = self._all()
            self._finish_deleting()
            for entry in entries:
                if not ended(entry.phase) and entry.run not in self._our_own:
                    self._end(entry)
        except (OSError, sqlite3.Error) as error:
            self._close_index()
            self.problem = _unusable(error, self._folder)

    def put(self, entry: RunEntry) -> None:
        """Record the newest of a run. Raises ``OSError`` where the disk refuses."""
        self._our_own.add(entry.run)
        self._owed[entry.run] = entry
        try:
            self._pay()
        except sqlite3.Error as error:
            raise OSError(f"the history's index: {error}") from error

    def _pay(self) -> None:
        """Take in what the disk refused so far. Without an index, that waits until there is one."""
        for entry in tuple(self._owed.values()) if self._index is not None else ():
            self._insert(entry)
            del self._owed[entry.run]

    def newest(self, limit: int) -> tuple[RunEntry, ...]:
        """At most ``limit``, whatever number that is; SQLite's own are of 64 bits."""
        most = min(max(0, limit), 2**63 - 1)
        return self._read(lambda: self._rows("ORDER BY started_s DESC LIMIT ?", (most,)))

    def find(self, beginning: str) -> RunEntry:
        """The run whose id begins so. Raises ``TandemError`` for none or several."""
        entries = self._read(
            lambda: self._rows("WHERE substr(run, 1, ?) = ? LIMIT 3", (len(beginning), beginning))
        )
        exact = [entry for entry in entries if entry.run == beginning]
        if len(exact or entries) == 1:
            return (exact or entries)[0]
        if not entries:
            raise TandemError(
                code="run-unknown",
                what=f"No run begins with {shown(beginning)!r}.",
                fix="Look at the list of runs (tandem runs).",
            )
        raise TandemError(
            code="run-ambiguous",
            what=f"Several runs begin with {shown(beginning)!r}.",
            fix="Give more of the run's id: see the list of runs (tandem runs).",
        )

    def label(self, run: RunId, name: str | None, note: str | None) -> RunEntry:
        """Name or annotate a run, here and in its folder; None leaves it. Raises ``TandemError``."""
        entry = labelled(self.find(run), name, note)
        folder = self._folder / entry.run
        try:
            if folder.is_dir():
                write_atomically(folder / SUMMARY, wire.to_json(entry))
            self._insert(entry)
        except (OSError, sqlite3.Error) as error:
            raise TandemError.of(_unusable(error, self._folder)) from error
        return entry

    def delete(self, run: RunId) -> None:
        """Remove a run and its folder for good. Cut off in the middle, it is brought to its end by ``open``.
        Raises ``TandemError`` for a run that is under way, for none such, and where the disk refuses."""
        entry = self.find(run)
        if entry.run in self._our_own and not ended(entry.phase):
            raise TandemError.of(_under_way())
        folder, leaving = self._folder / entry.run, self._folder / (DELETED + entry.run)
        try:
            if folder.is_dir() and is_run_id(entry.run):
                folder.replace(leaving)
            self._forget(entry.run)
        except (OSError, sqlite3.Error) as error:
            raise TandemError.of(_unusable(error, self._folder)) from error
        rmtree(leaving, ignore_errors=True)

    def close(self) -> None:
        self._closed = True
        self._close_index()

    def _read(self, read: Callable[[], T]) -> T:
        """Once more after making a broken index anew. Raises ``TandemError`` where there is none."""
        if self._index is None and not self._closed:
            self.open()  # the folder may be writable again by now
        if self._index is None:
            raise TandemError.of(self.problem or _closed())
        with suppress(sqlite3.Error):
            self._pay()
        try:
            return read()
        except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
            try:
                self._rebuild(error)
                return read()
            except (OSError, sqlite3.Error) as again:
                raise TandemError.of(_unusable(again, self._folder)) from again

    def _connect(self) -> None:
        # Made on the writer's thread and used there only; opened anew where a test closes it elsewhere.
        index = sqlite3.connect(self._folder / FILE, check_same_thread=False, timeout=5.0)
        try:
            index.execute("PRAGMA journal_mode=WAL")
            index.execute("PRAGMA synchronous=NORMAL")
            version = index.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA):
                raise sqlite3.DatabaseError(f"its schema is {version}, and this Tandem knows {SCHEMA}")
            index.executescript(_MAKE)
        except BaseException:
            index.close()
            raise
        self._index = index
        unread = self._fill()
        if unread:
            self.problem = _incomplete(unread, self._folder)

    def _all(self) -> tuple[RunEntry, ...]:
        return self._rows("", ())

    def _rows(self, clause: str, values: tuple[object, ...]) -> tuple[RunEntry, ...]:
        assert self._index is not None
        rows = self._index.execute(f"SELECT entry FROM runs {clause}", values).fetchall()
        return tuple(wire.from_json(row[0], RunEntry) for row in rows)

    def _rebuild(self, error: sqlite3.Error | msgspec.DecodeError) -> None:
        """The broken index is kept aside; the run folders are read again. Raises ``error`` for one that is
        not broken."""
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _NO_DAMAGE:
            raise error
        self._close_index()
        aside = next(
            path for number in count(1) if not (path := self._folder / f"{FILE}.broken-{number}").exists()
        )
        (self._folder / FILE).replace(aside)
        for rest in ("-wal", "-shm"):
            (self._folder / (FILE + rest)).unlink(missing_ok=True)
        self.problem = None
        self._connect()
        gaps: Problem | None = self.problem
        what = "The history's index was broken; it was made anew from the run folders."
        fix = f"The broken one is kept as {shown(str(aside))}."
        self.problem = Problem(
            code="history-rebuilt",
            what=f"{what} {gaps.what}" if gaps else what,
            fix=f"{gaps.fix} {fix}" if gaps else f"Nothing has to be done. {fix}",
            detail=repr(error),
        )

    def _fill(self) -> list[str]:
        """Take in the run folders that the index lacks. Those whose summary is damaged, by their names."""
        assert self._index is not None
        known = {row[0] for row in self._index.execute("SELECT run FROM runs")}
        unread = []
        for folder in sorted(self._folder.iterdir()):
            if folder.name in known or folder.name.startswith(DELETED):
                continue
            try:
                entry = wire.from_json((folder / SUMMARY).read_bytes(), RunEntry)
            except OSError:
                continue
            except msgspec.DecodeError:
                unread.append(folder.name)
                continue
            if entry.run == folder.name:
                self._insert(entry)
        return unread

    def _insert(self, entry: RunEntry) -> None:
        assert self._index is not None
        with self._index:
            self._index.execute(
                "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)",
                (entry.run, entry.started_s, wire.to_json(entry)),
            )

    def _forget(self, run: str) -> None:
        assert self._index is not None
        self._our_own.discard(RunId(run))
        self._owed.pop(RunId(run), None)
        with self._index:
            self._index.execute("DELETE FROM runs WHERE run = ?", (run,))

    def _finish_deleting(self) -> None:
        """What was being deleted when Tandem ended."""
        for leaving in self._folder.glob(f"{DELETED}*"):
            self._forget(leaving.name.removeprefix(DELETED))
            rmtree(leaving, ignore_errors=True)

    def _end(self, entry: RunEntry) -> None:
        """As its folder says, where the disk refused the index alone; else it was cut off."""
        folder = self._folder / RunId(entry.run)
        try:
            kept = wire.from_json((folder / SUMMARY).read_bytes(), RunEntry)
        except (OSError, msgspec.DecodeError):
            kept = entry
        if kept.run == entry.run and ended(kept.phase):
            self._insert(kept)
            return
        entry = replace(entry, phase=Failed(problem=_cut_off()))
        if folder.is_dir():
            write_atomically(folder / SUMMARY, wire.to_json(entry))
        self._insert(entry)

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None


def labelled(entry: RunEntry, name: str | None, note: str | None) -> RunEntry:
    """Raises ``TandemError`` for words that are too long to be kept."""
    for words, most, what in ((name, MOST_NAME, "name"), (note, MOST_NOTE, "note")):
        if words is not None and len(words) > most:
            raise TandemError(
                code="label-too-long",
                what=f"A run's {what} has at most {most:,} characters, and this one has {len(words):,}.",
                fix="Shorten it.",
            )
    return replace(
        entry,
        name=entry.name if name is None else name.strip(),
        note=entry.note if note is None else note.strip(),
    )


def _under_way() -> Problem:
    return Problem(
        code="run-under-way",
        what="This run is still under way.",
        fix="Stop it, or wait for its end; then delete it.",
    )


def _closed() -> Problem:
    return Problem(code="history-closed", what="Tandem is ending.", fix="Start it again.")


def _incomplete(unread: list[str], folder: Path) -> Problem:
    runs = "Of one run" if len(unread) == 1 else f"Of {len(unread)} runs"
    places = ", ".join(shown(str(folder / name)) for name in unread[:MOST_NAMED])
    return Problem(
        code="history-incomplete",
        what=f"{runs} {SUMMARY} is damaged, and the list lacks {'it' if len(unread) == 1 else 'them'}.",
        fix=f"Whatever else was recorded is still there: {places}{' …' if len(unread) > MOST_NAMED else ''}.",
    )


def _unusable(error: Exception, folder: Path) -> Problem:
    return Problem(
        code="history-unusable",
        what=f"The history in {shown(str(folder))} cannot be used ({error}).",
        fix="Make the folder writable for you and free some space; then look at the runs again.",
        detail=repr(error),
    )


def _cut_off() -> Problem:
    """A run that was under way when the node started: the node had ended without ending it."""
    return Problem(
        code="cut-off",
        what="Tandem ended while this run was under way.",
        fix="Train again. The run's folder keeps what was written until then.",
    )
