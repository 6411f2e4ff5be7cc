"""Writes a run's files for people into its folder: history.csv, history.json and report.html; for a sweep the
first and the last.

Blocks: runs on a separate thread after the run. Failures are reported or logged, and do not affect the run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from core.history.best import ranked
from core.history.read import read_exits, read_run, read_words
from core.history.record import RunRecord
from core.home.private_file import write_atomically
from core.report.page import MOST_FILES, page, render
from core.report.table import history_csv, history_json, trials_csv
from core.report.trials import MOST_DRAWN, parts
from core.vocabulary.answers import RunEntry
from core.vocabulary.paths import shown
from core.vocabulary.run_folder import HISTORY_CSV, HISTORY_JSON, OUTPUTS, REPORT
from core.vocabulary.sweep import Sweep

MOST_EPOCHS = 100_000
"""Per member, in the history's files; more are thinned."""

_log = logging.getLogger(__name__)


def write_report(record: RunRecord) -> None:
    """Write all three files, once a run's record is closed. Does nothing for a run without a folder."""
    if record.folder.is_dir():
        _write(record.entry, record.folder, record.trouble)


def renew_report(entry: RunEntry, folder: Path) -> None:
    """Rewrite the files of a past run after a change of its name or note, if it has a report."""
    if (folder / REPORT).is_file():
        _write(entry, folder, lambda words: _log.warning("the run %s: %s", entry.run, words))


def write_sweep(sweep: Sweep, entry: RunEntry, runs: Sequence[RunEntry]) -> None:
    """Write a sweep's trials as a table and as a page. ``entry``: its own; ``runs``: those of its trials."""
    folder, known = Path(entry.folder), {run.run: run for run in runs}
    drawn = [known[trial.run] for trial in ranked(sweep)[:MOST_DRAWN] if trial.run in known]
    read = {run.run: read_run(run, Path(run.folder)) for run in drawn}
    try:
        write_atomically(folder / HISTORY_CSV, trials_csv(sweep).encode())
        write_atomically(folder / REPORT, render(**parts(sweep, entry, read)).encode())
    except OSError as error:
        _log.warning("the report of the sweep %s cannot be written: %s", sweep.sweep, error)


def _write(entry: RunEntry, folder: Path, trouble: Callable[[str], None]) -> None:
    details = read_run(entry, folder, MOST_EPOCHS)
    exits = [(end.device, end.task, end.exit) for end in read_exits(folder)]
    try:
        write_atomically(folder / HISTORY_CSV, history_csv(details).encode())
        write_atomically(folder / HISTORY_JSON, history_json(details))
        here = _outputs_here(entry, folder / OUTPUTS)
        text = page(details, exits, here, read_words(folder))
        write_atomically(folder / REPORT, text.encode())
    except OSError as error:
        trouble(f"its report in {shown(str(folder))} cannot be written ({error.strerror or error}).")


def _outputs_here(entry: RunEntry, folder: Path) -> set[str]:
    """Outputs that exist, and whose names can only mean a file below ``folder``."""
    return {
        path
        for path in entry.summary.outputs[:MOST_FILES]
        if not Path(path).is_absolute()
        and ".." not in Path(path).parts
        and not urlsplit(path).scheme
        and (folder / path).is_file()
    }
