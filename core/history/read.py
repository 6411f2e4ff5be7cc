"""Reads one run from its folder, thinned to fit a screen and a message. Blocks: use a thread."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from core.history.metrics_file import DECODER, Metric, Report, Thinned
from core.project import checkpoint_store
from core.vocabulary import events as ev
from core.vocabulary import run_folder, wire
from core.vocabulary.answers import RunDetails, RunEntry
from core.vocabulary.bounds import FEW
from core.vocabulary.ids import DeviceId
from core.vocabulary.laptops import LaptopUsed, MembershipChanged
from core.vocabulary.manifest import Manifest
from core.vocabulary.plan import Moment, Plan
from core.vocabulary.progress import EpochEnd, Progress
from core.vocabulary.run_folder import EVENTS, LOGS, METRICS, PLAN, PROJECT, REPORT, SUMMARY, TANDEM_LOG
from core.vocabulary.text import plain_lines

MOST_POINTS = 4_000
PEER_POINTS, PEER_BYTES, PEER_USES = 1_000, 256 * 1024, 500
"""Limits for the parts of a record that are sent to another laptop in one message."""
_PEER_WORDS = 200
LOG_BYTES = 64 * 1024

_MEMBERSHIP = msgspec.json.Decoder(MembershipChanged)
_ENDED = msgspec.json.Decoder(ev.MemberEnded)

T = TypeVar("T")


def read_run(entry: RunEntry, folder: Path, most_epochs: int = MOST_POINTS) -> RunDetails:
    """Everything about the run that can still be read; only the entry if the folder is gone."""
    steps, epochs, uses = _metrics(folder / METRICS, most_epochs)
    return replace(
        read_outcome(entry, folder),
        steps={device: thinned.items for device, thinned in steps.items()},
        epochs={device: thinned.items for device, thinned in epochs.items()},
        uses={device: thinned.items for device, thinned in uses.items()},
        membership=tuple(_lines(folder / EVENTS, _MEMBERSHIP)),
        log=_log(folder / LOGS, read_plan(folder)),
    )


def read_outcome(entry: RunEntry, folder: Path) -> RunDetails:
    """As ``read_run``, without metrics and log, which take a second for a long run."""
    kept = checkpoint_store.newest_by_size(folder / run_folder.CHECKPOINTS)
    report = folder / REPORT
    return RunDetails(
        entry=entry,
        plan=read_plan(folder),
        report=str(report) if report.is_file() else "",
        checkpoint=kept.head.moment if kept else None,
    )


def read_exits(folder: Path) -> list[ev.MemberEnded]:
    """How each trainer of a run ended, as far as recorded."""
    return list(_lines(folder / EVENTS, _ENDED))


def read_words(folder: Path) -> list[str]:
    """Tandem's own messages about the training: such as differences from a single machine."""
    return plain_lines(_end_of(folder / LOGS / TANDEM_LOG, LOG_BYTES))


def read_membership(folder: Path) -> list[MembershipChanged]:
    """Members that joined and left, in order."""
    return list(_lines(folder / EVENTS, _MEMBERSHIP))


def read_entry(folder: Path) -> RunEntry | None:
    return _read(folder / SUMMARY, RunEntry)


def taken_s(entry: RunEntry, plan: Plan | None, end_s: float) -> float:
    """Duration of a run that ended at ``end_s``, by this node's clock, including the runs that it resumed."""
    before_s = 0.0 if plan is None or plan.resume is None else plan.resume.took_s
    return before_s + max(0.0, end_s - entry.started_s)


def read_taken_s(folder: Path) -> float:
    """The same for a run whose record may be unfinished, as after a crash: up to its last entry."""
    entry = read_entry(folder)
    if entry is None:
        return 0.0
    if entry.duration_s is not None:
        return entry.duration_s
    end_s = 0.0
    for name in (METRICS, EVENTS):
        with suppress(OSError):
            end_s = max(end_s, (folder / name).stat().st_mtime)
    return taken_s(entry, read_plan(folder), end_s)


def read_plan(folder: Path) -> Plan | None:
    return _read(folder / PLAN, Plan)


def read_project(folder: Path) -> Manifest | None:
    """The project's files at the beginning of a run that was started here."""
    return _read(folder / PROJECT, Manifest)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return wire.from_json(path.read_bytes(), kind)
    except (OSError, msgspec.DecodeError):
        return None


def read_metrics(folder: Path) -> Iterator[Metric]:
    """Every recorded step, epoch and reading, in order."""
    return _lines(folder / METRICS, DECODER)


def read_later(folder: Path) -> Iterator[Report]:
    """Reports that other laptops recorded after this one was lost, as far as they sent them."""
    for event in _lines(folder / run_folder.LATER, DECODER):
        if not isinstance(event, LaptopUsed):
            yield event


def read_later_uses(folder: Path) -> Iterator[LaptopUsed]:
    """How busy the laptops were in that time. ``second``: as in ``uses_for_peer``."""
    return (event for event in _lines(folder / run_folder.LATER, DECODER) if isinstance(event, LaptopUsed))


def read_later_membership(folder: Path) -> list[MembershipChanged]:
    """Departures and arrivals in that time."""
    return list(_lines(folder / run_folder.LATER, _MEMBERSHIP))


def membership_for_peer(folder: Path) -> tuple[MembershipChanged, ...]:
    """Departures and arrivals, to be sent to another laptop: ``at_s`` is by the clock of the run's reports,
    which all members share."""
    reports = (event for event in read_metrics(folder) if not isinstance(event, LaptopUsed))
    if (first := next(reports, None)) is None:
        return ()
    return tuple(
        replace(turn, words=turn.words[:_PEER_WORDS])
        if turn.second is None
        else replace(turn, at_s=reported_s(first) + turn.second, words=turn.words[:_PEER_WORDS])
        for turn in read_membership(folder)[-FEW:]
    )


def place_of(report: Report) -> tuple[int, int, int]:
    """The position in the training, as ``Moment``'s fit, epoch and batch."""
    if isinstance(report, ev.MemberProgressed):
        step = report.progress
        return step.fit, step.epoch, step.batch + 1
    return report.epoch.fit, report.epoch.epoch + 1, 0


def came_before(report: Report, moment: Moment) -> bool:
    """Whether a checkpoint at ``moment`` includes the report."""
    is_whole = isinstance(report, ev.MemberProgressed) or report.epoch.whole
    return is_whole and place_of(report) <= (moment.fit, moment.epoch, moment.batch)


def reports_for_peer(folder: Path, moment: Moment) -> tuple[Report, ...]:
    """Reports recorded after ``moment``, in the order of time, thinned to fit into a message."""
    found: dict[tuple[type, DeviceId], list[Report]] = defaultdict(list)
    for event in read_metrics(folder):
        if not isinstance(event, LaptopUsed) and not came_before(event, moment):
            found[type(event), event.device].append(event)
    most = PEER_POINTS // 2
    while most > 1:
        kept = sorted(
            (each for reports in found.values() for each in _thinned(reports, most)), key=reported_s
        )
        if len(kept) <= PEER_POINTS and len(wire.to_msgpack(kept)) <= PEER_BYTES:
            return tuple(kept)
        most //= 2
    return ()


def uses_for_peer(folder: Path, moment: Moment) -> tuple[LaptopUsed, ...]:
    """How busy the laptops were after ``moment``, also thinned. ``second`` is Unix time here, by the clock of
    the run's reports."""
    first_s, is_after = None, False
    found: dict[DeviceId, list[LaptopUsed]] = defaultdict(list)
    for event in read_metrics(folder):
        if not isinstance(event, LaptopUsed):
            first_s = reported_s(event) if first_s is None else first_s
            is_after = is_after or not came_before(event, moment)
        elif is_after and first_s is not None:
            found[event.device].append(replace(event, second=first_s + event.second))
    most = max(2, PEER_USES // max(1, len(found)))
    return tuple(each for uses in found.values() for each in _thinned(uses, most))[:PEER_USES]


def _thinned(reports: list[T], most: int) -> tuple[T, ...]:
    thinned = Thinned[T](most)
    for each in reports:
        thinned.add(each)
    return thinned.items


def reported_s(report: Report) -> float:
    """A report's Unix time, by its sender's clock."""
    return report.progress.at_s if isinstance(report, ev.MemberProgressed) else report.epoch.at_s


def _metrics(
    path: Path, most_epochs: int
) -> tuple[
    dict[DeviceId, Thinned[Progress]], dict[DeviceId, Thinned[EpochEnd]], dict[DeviceId, Thinned[LaptopUsed]]
]:
    steps: dict[DeviceId, Thinned[Progress]] = defaultdict(lambda: Thinned(MOST_POINTS))
    epochs: dict[DeviceId, Thinned[EpochEnd]] = defaultdict(lambda: Thinned(most_epochs))
    uses: dict[DeviceId, Thinned[LaptopUsed]] = defaultdict(lambda: Thinned(MOST_POINTS))
    for event in _lines(path, DECODER):
        if isinstance(event, ev.MemberProgressed):
            steps[event.device].add(event.progress)
        elif isinstance(event, ev.MemberEndedEpoch):
            epochs[event.device].add(event.epoch)
        else:
            uses[event.device].add(event)
    return steps, epochs, uses


def _lines(path: Path, decoder: msgspec.json.Decoder[T]) -> Iterator[T]:
    """The lines of a file that have the decoder's type; half a line from a crash is skipped."""
    try:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    yield decoder.decode(line)
                except msgspec.DecodeError:
                    continue
    except OSError:
        return


def _log(folder: Path, plan: Plan | None) -> str:
    """The ends of all logs, each under its name, in ``LOG_BYTES`` together."""
    laptops = {}
    if plan is not None and not plan.names_roles:
        names = {member.device: member.name for member in plan.members}
        laptops = {run_folder.task_name(task.name): names.get(task.device, task.name) for task in plan.tasks}
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".log" and path.is_file())
    except OSError:
        return ""
    parts = [_end_of(path, LOG_BYTES // len(paths) - 100) for path in paths]
    texts = [
        f"--- {laptops.get(path.stem, path.stem)} ---\n{text}"
        for path, text in zip(paths, parts, strict=True)
        if text
    ]
    return "\n".join(texts)


def _end_of(path: Path, most: int) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - max(0, most)))
            data = file.read(max(0, most))
    except OSError:
        return ""
    if size > len(data):
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")
