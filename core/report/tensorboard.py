"""A run's record as TensorBoard's event files: one folder per member, all its steps and epochs.

Blocks: use a thread. Uses TensorBoard's own package (the extra ``tensorboard``), never TensorFlow.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from core.history.read import read_metrics
from core.report.curves import member_names
from core.vocabulary import events as ev
from core.vocabulary.answers import RunDetails
from core.vocabulary.errors import TandemError
from core.vocabulary.ids import DeviceId, short
from core.vocabulary.laptops import LaptopUsed
from core.vocabulary.run_folder import TENSORBOARD
from core.vocabulary.versions import install_fix

_NAME = "events.out.tfevents.tandem"
_SPEED = ("samples_s", "steps_s", "step_s", "wait_s", "wire_s", "wire_bytes", "share")


def check_installed() -> None:
    """Raises ``TandemError`` without the extra."""
    if find_spec("tensorboard") is None:
        raise TandemError(
            code="tensorboard-missing",
            what="TensorBoard is not installed beside Tandem.",
            fix=install_fix("'tensorboard>=2.20'"),
        )


def write_event_files(details: RunDetails, folder: Path) -> Path:
    """Write a run's reports as event files below its ``folder``. Returns TensorBoard's ``logdir``.

    Raises ``TandemError`` where nothing was reported, the extra is missing or the disk fails.
    """
    check_installed()
    logdir = folder / TENSORBOARD
    names = member_names(details)
    try:
        members = _write(read_metrics(folder), logdir, names)
    except OSError as error:
        raise TandemError(
            code="tensorboard-unwritten",
            what=f"The event files cannot be written ({error.strerror or error}).",
            fix="Free some space on this laptop's disk, or make the run's folder writable for you.",
        ) from error
    if not members:
        raise TandemError(
            code="nothing-to-show",
            what="The script of this run reported no numbers.",
            fix="Choose another run: tandem runs lists them.",
        )
    return logdir


def _write(
    reports: Iterable[ev.MemberProgressed | ev.MemberEndedEpoch | LaptopUsed],
    logdir: Path,
    names: Mapping[DeviceId, str],
) -> int:
    members: dict[DeviceId, EventFile] = {}
    try:
        for report in reports:
            if isinstance(report, LaptopUsed):
                continue
            if report.device not in members:
                name = member_folder(names.get(report.device, ""), report.device)
                members[report.device] = EventFile(logdir / name)
            members[report.device].add(report)
    finally:
        for file in members.values():
            file.close()
    return len(members)


def member_folder(name: str, device: DeviceId) -> str:
    """A member's name in TensorBoard. A name from a peer never becomes a path."""
    words = "".join(char if char.isalnum() else " " for char in f"{name[:40]} {short(device)}").split()
    return "-".join(words) or "member"


class EventFile:
    """One member's scalars. Steps go on from one ``fit`` to the next. Replaces an existing file."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = folder / _NAME
        self._part = folder / f".{_NAME}.part"
        descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        self._records = RecordWriter(os.fdopen(descriptor, "wb"))
        self._fit = 0
        self._before = 0
        self._steps = 0
        self._begun = False

    def add(self, report: ev.MemberProgressed | ev.MemberEndedEpoch) -> None:
        match report:
            case ev.MemberProgressed(progress=progress):
                values: dict[str, float | None] = {
                    f"steps/{name}": value for name, value in progress.logs.items()
                }
                values |= {f"speed/{name}": getattr(progress, name) for name in _SPEED}
                values["gradient/norm"] = progress.grad_norm
                self._scalars(progress.at_s, self._step(progress.fit, progress.step), values)
            case ev.MemberEndedEpoch(epoch=epoch) if epoch.whole:
                ends = {f"epochs/{name}": value for name, value in epoch.logs.items()}
                ends["speed/epoch_s"] = epoch.seconds
                self._scalars(epoch.at_s, self._step(epoch.fit, epoch.step), ends)

    def close(self) -> None:
        self._records.close()
        self._part.replace(self._path)

    def _step(self, fit: int, step: int) -> int:
        if fit != self._fit:
            self._fit, self._before, self._steps = fit, self._before + self._steps, 0
        self._steps = max(self._steps, step + 1)
        return self._before + step + 1

    def _scalars(self, at_s: float, step: int, values: Mapping[str, float | None]) -> None:
        if not self._begun:
            self._begun = True
            self._records.write(self._event(wall_time=at_s, file_version="brain.Event:2").SerializeToString())
        summary = self._summary(
            value=[
                self._summary.Value(tag=tag, simple_value=value)
                for tag, value in values.items()
                if value is not None and math.isfinite(value)
            ]
        )
        self._records.write(self._event(wall_time=at_s, step=step, summary=summary).SerializeToString())
