"""A project of many files before its next run: nothing has changed, so that sizes, times and inodes are
compared, and no content is read."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.result import Row, median, spread
from core.project.scan import scan_project

FILES, FILE_BYTES, ROUNDS = 10_000, 2_000, 5
LIMIT_S = 1.0
SETTLE_S = 3.0
"""A file that was changed just now is read again: its time may not tell."""


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="tandem-bench-") as base:
        folder, hashes = Path(base).resolve() / "project", Path(base).resolve() / "hashes"
        hashes.mkdir()
        for number in range(FILES):
            file = folder / f"{number // 500}" / f"{number}.bin"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(number.to_bytes(4, "little") * (FILE_BYTES // 4))
        script = folder / "train.py"
        script.write_text("import glob\n")
        time.sleep(SETTLE_S)
        first_s, *next_s = [_took_s(script, hashes) for _ in range(1 + ROUNDS)]
    return rows(first_s, next_s)


def _took_s(script: Path, hashes: Path) -> float:
    began_s = time.monotonic()
    found = scan_project(script, hashes=hashes)
    if len(found.manifest.files) != FILES + 1:
        raise RuntimeError(f"{len(found.manifest.files)} files were found")
    return time.monotonic() - began_s


def rows(first_s: float, next_s: list[float]) -> list[Row]:
    what = f"{FILES:,} files of {FILE_BYTES:,} bytes"
    return [
        Row(what=f"{what}, for the first time", value=first_s, unit="s"),
        Row(
            what=f"{what}, unchanged",
            value=median(next_s),
            unit="s",
            limit=LIMIT_S,
            note=spread(next_s),
        ),
    ]
