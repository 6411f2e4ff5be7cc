"""Scenarios' results in one plain process, kept between pytest runs.

The engine has no part in them, so they stay the same until a scenario, Keras, TensorFlow or this machine
changes. Never an expected value: pytest's cache is local, not committed, and `--cache-clear` empties it.
"""

from __future__ import annotations

import hashlib
import io
import platform
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

from core.home.private_file import write_atomically
from core.telemetry.hardware import cpu_name
from tests.exactness import processes

HERE = Path(__file__).parent
RELEASES = ("h5py", "keras", "ml_dtypes", "numpy", "tensorflow")
CHOICES = ("KERAS_", "ONEDNN_", "TF_", "XLA_")
"""Prefixes of environment variables that change what Keras computes."""
DIGEST = hashlib.sha256().digest_size


def version_key(folder: Path = HERE) -> str:
    """One key for everything that plain results depend on. A change of any scenario recomputes all of
    them."""
    scenarios = [path for name in ("scenarios", "scripts") for path in sorted((folder / name).glob("*.py"))]
    sources = [*scenarios, *(folder / name for name in ("keras_names.py", "member.py", "processes.py"))]
    choices = [f"{k}={v}" for k, v in sorted(processes.environment().items()) if k.startswith(CHOICES)]
    releases = [f"{name} {version(name)}" for name in RELEASES]
    machine = [sys.version, platform.platform(), cpu_name()]
    key = hashlib.sha256("\n".join([*machine, *releases, *choices]).encode())
    for path in sources:
        key.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return key.hexdigest()


class PlainResults:
    """One file per scenario, in a folder for this key. Without a folder, nothing is kept."""

    def __init__(self, folder: Path | None, key: str) -> None:
        self._folder = folder / key if folder else None
        for other in folder.glob("*") if folder else ():
            if other.name != key:
                shutil.rmtree(other)  # 20 MB that nobody reads again

    def get(self, name: str) -> dict[str, np.ndarray] | None:
        """None for a missing or damaged result."""
        if self._folder is None:
            return None
        try:
            data = (self._folder / name).read_bytes()
        except OSError:
            return None
        digest, content = data[:DIGEST], data[DIGEST:]
        if hashlib.sha256(content).digest() != digest:
            return None
        return dict(np.load(io.BytesIO(content)))

    def put(self, name: str, npz: Path) -> None:
        """Keeps a copy of a process's result."""
        if self._folder is not None:
            content = npz.read_bytes()
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / name, hashlib.sha256(content).digest() + content)
