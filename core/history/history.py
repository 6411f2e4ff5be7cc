"""The list of all runs, read from the summaries in their folders when the node starts.

Blocks: call only on the writer's thread. Only the node writes there, so they are read once: a thousand take
about 60 ms on one core.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from core.history.read import read_taken_s
from core.home.private_file import write_atomically
from core.runtime.removal import remove_tree
from core.vocabulary import wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.commands import MOST_NAME, MOST_NOTE
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import RunId, SweepId
from core.vocabulary.paths import shown
from core.vocabulary.phases import Failed, Phase, ended, goes_on
from core.vocabulary.run_folder import DELETED, SUMMARY, is_run_id

MOST_NAMED = 3
_CUT_OFF = "cut-off"


class History:
    """``folder`` holds one folder per run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._entries: dict[RunId, RunEntry] | None = None
        self._closed = False
        self._newer: dict[RunId, RunEntry] = {}
        """Runs of this process, runs labelled by it, and runs found cut off. After a failed write these are
        newer than on disk."""
        self._unwritten: set[RunId] = set()
        """Runs of ``_newer`` whose summary could not be written."""
        self.cut_off: RunEntry | None = None
        """The newest run that was found cut off."""
        self.cut_off_before: RunEntry | None = None
        """The newest run of all, if it was found cut off before."""
        self.problem: Problem | None = None
        """A defect that the user should know about: the list has gaps, or cannot be used."""

    def open(self) -> None:
        """Read the folders; runs that were under way when Tandem ended are marked as failed."""
        self.problem = None
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for leaving in self._folder.glob(f"{DELETED}*"):  # deletions interrupted when Tandem ended
                remove_tree(leaving)
            found = self._read_folders()
            newest = max(found.values(), key=lambda entry: entry.started_s, default=None)
            if newest is not None and _is_cut_off(newest.phase):
                self.cut_off_before = newest
            for entry in found.values():
                if not ended(entry.phase) and entry.run not in self._newer:
                    was = self._newer[entry.run] = replace(
                        entry,
                        phase=Failed(problem=_cut_off(entry.run)),
                        duration_s=read_taken_s(self._folder / entry.run),
                    )
                    self._unwritten.add(entry.run)
                    if self.cut_off is None or self.cut_off.started_s < was.started_s:
                        self.cut_off = was
            self._entries = found | self._newer
            self._retry_writes()
        except OSError as error:
            self.problem = _unusable(error, self._folder)

    def put(self, entry: RunEntry) -> None:
        """Record the newest state of a run, also in its folder. Raises ``OSError`` where the disk fails;
        every later call then retries the write."""
        self._newer[entry.run] = entry
        if self._entries is not None:
            self._entries[entry.run] = entry
        self._unwritten.add(entry.run)
        self._write(entry)
        self._retry_writes()

    def newest(self, limit: int) -> tuple[RunEntry, ...]:
        """At most ``limit`` runs, and the trials of sweeps since. A run that was continued automatically is
        part of the next one."""
        known = self._all().values()
        resumed = {entry.resumed for entry in known}
        own = (each for each in known if not (each.run in resumed and goes_on(each.phase)))
        entries = sorted(own, key=lambda entry: entry.started_s, reverse=True)
        alone = [at for at, entry in enumerate(entries) if not entry.sweep]
        return tuple(entries[: alone[max(0, limit)] if len(alone) > max(0, limit) else len(entries)])

    def of_sweep(self, sweep: SweepId) -> tuple[RunEntry, ...]:
        """The runs of its trials."""
        return tuple(entry for entry in self._all().values() if entry.sweep == sweep)

    def chain(self, entry: RunEntry) -> tuple[RunEntry, ...]:
        """The run and those that it resumes, the newest first."""
        found: dict[RunId, RunEntry] = {}
        while entry.run not in found:  # files can be tampered with
            found[entry.run] = entry
            entry = self._all().get(entry.resumed or entry.run, entry)
        return tuple(found.values())

    def find(self, beginning: str) -> RunEntry:
        """The run whose id begins like this. Raises ``TandemError`` for none or several."""
        entries = [entry for entry in self._all().values() if entry.run.startswith(beginning)]
        exact = [entry for entry in entries if entry.run == beginning]
        if len(exact or entries) == 1:
            return (exact or entries)[0]
        if not entries:
            raise TandemError(
                code="run-unknown",
                what=f"No run begins with {shown(beginning)!r}.",
                fix="See the list of runs (tandem runs).",
            )
        raise TandemError(
            code="run-ambiguous",
            what=f"Several runs begin with {shown(beginning)!r}.",
            fix="Give more of the run's id: see the list of runs (tandem runs).",
        )

    def label(self, run: RunId, name: str | None, note: str | None) -> RunEntry:
        """Name or annotate a run, here and in its folder; None keeps a value. Raises ``TandemError``."""
        entry = labelled(self.find(run), name, note)
        folder = self._folder / entry.run
        try:
            if folder.is_dir():
                write_atomically(folder / SUMMARY, wire.to_json(entry))
        except OSError as error:
            raise TandemError.of(_unusable(error, self._folder)) from error
        self._newer[entry.run] = self._all()[entry.run] = entry
        return entry

    def delete(self, run: RunId) -> None:
        """Remove a run and its folder for good; ``open`` completes an interrupted deletion. Raises
        ``TandemError`` for a run under way, for an unknown one, and where the disk fails."""
        entry = self.find(run)
        if entry.run in self._newer and not ended(entry.phase):
            raise TandemError.of(_under_way())
        folder, leaving = self._folder / entry.run, self._folder / (DELETED + entry.run)
        try:
            if folder.is_dir() and is_run_id(entry.run):
                folder.replace(leaving)
        except OSError as error:
            raise TandemError.of(_unusable(error, self._folder)) from error
        self._newer.pop(entry.run, None)
        self._unwritten.discard(entry.run)
        del self._all()[entry.run]
        remove_tree(leaving)

    def close(self) -> None:
        self._retry_writes()
        self._closed, self._entries = True, None

    def _all(self) -> dict[RunId, RunEntry]:
        """Raises ``TandemError`` where the folder cannot be read."""
        if self._entries is None and not self._closed:
            self.open()  # the folder may be readable again by now
        if self._entries is None:
            raise TandemError.of(self.problem or _closed())
        self._retry_writes()
        return self._entries

    def _retry_writes(self) -> None:
        """Retry failed writes. Those that fail again stay pending."""
        for run in tuple(self._unwritten):
            with suppress(OSError):
                self._write(self._newer[run])

    def _write(self, entry: RunEntry) -> None:
        folder = self._folder / entry.run
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(folder / SUMMARY, wire.to_json(entry))
        self._unwritten.discard(entry.run)

    def _read_folders(self) -> dict[RunId, RunEntry]:
        """Damaged summaries become the ``problem``."""
        found, unread = dict[RunId, RunEntry](), list[str]()
        for folder in sorted(self._folder.iterdir()):
            try:
                entry = wire.from_json((folder / SUMMARY).read_bytes(), RunEntry)
            except OSError:
                continue
            except msgspec.DecodeError:
                unread.append(folder.name)
                continue
            if entry.run == folder.name:
                found[entry.run] = entry
        if unread:
            self.problem = _incomplete(unread, self._folder)
        return found


def labelled(entry: RunEntry, name: str | None, note: str | None) -> RunEntry:
    """The entry with another name or note; None keeps a value. Raises ``TandemError`` for values that are too
    long."""
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
    runs = "one run" if len(unread) == 1 else f"{len(unread)} runs"
    places = ", ".join(shown(str(folder / name)) for name in unread[:MOST_NAMED])
    return Problem(
        code="history-incomplete",
        what=f"The list lacks {runs}, because {SUMMARY} is damaged.",
        fix=f"The rest of the record is still there: {places}{' …' if len(unread) > MOST_NAMED else ''}.",
    )


def _unusable(error: Exception, folder: Path) -> Problem:
    return Problem(
        code="history-unusable",
        what=f"The history in {shown(str(folder))} cannot be used ({error}).",
        fix="Make the folder writable for you and free some space; then open the list of runs again.",
        detail=repr(error),
    )


def _is_cut_off(phase: Phase) -> bool:
    return isinstance(phase, Failed) and phase.problem.code == _CUT_OFF


def _cut_off(run: RunId) -> Problem:
    """A run that was under way when the node started: the previous node had ended without ending it."""
    return Problem(
        code=_CUT_OFF,
        what="Tandem ended while this run was under way.",
        fix=f"Resume it (tandem resume {run}), or train again.",
    )
