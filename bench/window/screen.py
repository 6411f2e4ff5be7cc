"""A screen for windows that nobody looks at: Xvfb if it is installed, else none at all."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def screen() -> Iterator[dict[str, str]]:
    """The environment of a window's process, with its own folders; "QT_QPA_PLATFORM" names the screen."""
    with tempfile.TemporaryDirectory(prefix="tandem-bench-screen-") as base:
        folder = Path(base).resolve()
        (folder / "run").mkdir(mode=0o700)
        own = {**os.environ, "HOME": str(folder), "XDG_RUNTIME_DIR": str(folder / "run")}
        program = shutil.which("Xvfb")
        if program is None:
            yield {**own, "QT_QPA_PLATFORM": "offscreen"}
            return
        read, write = os.pipe()
        with subprocess.Popen(
            [program, "-displayfd", str(write), "-screen", "0", "1280x900x24", "-nolisten", "tcp"],
            pass_fds=[write],
            stderr=subprocess.DEVNULL,
        ) as server:
            os.close(write)
            try:
                with os.fdopen(read) as told:
                    number = told.readline().strip()
                if not number:
                    raise RuntimeError("Xvfb did not start")
                yield {**own, "QT_QPA_PLATFORM": "xcb", "DISPLAY": f":{number}"}
            finally:
                server.terminate()


def words(environment: dict[str, str]) -> str:
    return "on Xvfb" if environment["QT_QPA_PLATFORM"] == "xcb" else "without a screen (offscreen)"
