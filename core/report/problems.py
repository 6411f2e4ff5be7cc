"""Why a report cannot be sent or stored, and the notice of a received one."""

from __future__ import annotations

from pathlib import Path

from core.vocabulary.errors import REPORT_CAME, Problem
from core.vocabulary.paths import shown
from core.vocabulary.text import plain


def came(name: str, script: str, path: Path) -> Problem:
    """The notice of a received report. ``detail``: the file."""
    return Problem(
        code=REPORT_CAME,
        what=f"{name} sent the report of {script}.",
        fix=f"It is kept under Runs, and opens in a browser: {shown(str(path))}",
        detail=str(path),
    )


def not_kept(name: str, script: str, error: OSError) -> Problem:
    return Problem(
        code="report-not-kept",
        what=f"{name} sent the report of {script}, which could not be stored ({error.strerror or error}).",
        fix="Free some space on this laptop's disk, and ask for it again.",
    )


def not_received() -> Problem:
    return Problem(
        code="no-such-report",
        what="There is no such report from another laptop any more.",
        fix="It may have been deleted. tandem runs lists those that are kept.",
    )


def not_deleted(error: OSError) -> Problem:
    return Problem(
        code="report-not-deleted",
        what=f"The report could not be deleted ({error.strerror or error}).",
        fix="Check the folder's permissions, and that its disk can be written to.",
    )


def no_report() -> Problem:
    return Problem(
        code="no-report",
        what="This run has no report.",
        fix="A report is written when a run ends, and deleted with the run.",
    )


def too_large(path: str) -> Problem:
    return Problem(
        code="report-too-large",
        what="The report is too large for Tandem to send.",
        fix=f"Send the file another way: {plain(path, 400)}",
    )


def not_connected(name: str) -> Problem:
    return Problem(
        code="device-offline",
        what=f"{plain(name, 40)} is not connected.",
        fix="Check that it is on, awake and on the network, with Tandem open.",
    )


def just_sent(name: str, apart_s: float) -> Problem:
    return Problem(
        code="report-just-sent",
        what=f"A report was sent to {plain(name, 40)} just now.",
        fix=f"Wait {apart_s:.0f} s before the next one.",
    )
