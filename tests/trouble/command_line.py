"""``tandem`` as run in a person's terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT_S = 240.0


def tandem(*argv: str | Path, enter: Sequence[str] = ()) -> tuple[int, str]:
    """Returns its exit code and all output, which never contains a traceback."""
    with begun(*argv, enter=enter) as process:
        out, _ = process.communicate(timeout=LIMIT_S)
    assert "Traceback" not in out, out
    return process.returncode, out


@contextmanager
def begun(*argv: str | Path, enter: Sequence[str] = ()) -> Iterator[subprocess.Popen[str]]:
    """While it runs; kills it afterwards if needed."""
    process = subprocess.Popen(
        [*enter, sys.executable, "-m", "app", *map(str, argv)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "PYTHONUNBUFFERED": "1", "COLUMNS": "500"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Its output up to the line with these words."""
    assert process.stdout is not None
    said = ""
    for line in process.stdout:
        said += line
        if words in line:
            return said
    raise AssertionError(f"{words!r} never came: {said}")
