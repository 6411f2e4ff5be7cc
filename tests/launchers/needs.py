"""Real launchers' requirements of this machine: a missing one is named, and nothing is installed
automatically."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

DECLARED = "TANDEM_LAUNCHERS"
"""Environment: the launchers that this machine has, ``slurm,ray``. If one of those is missing, that is a
failure."""
RAY_PYTHON = "TANDEM_RAY_PYTHON"
"""Environment: a Python that has Ray."""
PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
_ROOT = Path(__file__).parents[2]
_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "sinfo")


def slurm() -> None:
    """Without Slurm, skips the test, or fails it if Slurm was declared."""
    missing = [program for program in _PROGRAMS if shutil.which(program, path=PATH) is None]
    _missing("slurm", missing, "Debian and Ubuntu have it: apt-get install slurm-wlm munge")
    if os.name != "posix" or os.geteuid() != 0:
        _missing("slurm", ["root, for whom slurmd starts jobs"], "Start make cluster-test as root")


def ray() -> Path:
    """The Python that has Ray."""
    named = os.environ.get(RAY_PYTHON)
    python = Path(named) if named else _ROOT / "build" / "ray" / "bin" / "python"
    folder = python.parent.parent
    installed = list(folder.glob("lib/python*/site-packages/ray/__init__.py"))
    how = f"Make an environment for it: python3 -m venv {folder} && {folder}/bin/pip install ray"
    _missing(
        "ray", [] if python.exists() and installed else [str(python)], f"{how}; or name one: {RAY_PYTHON}"
    )
    return python


def _missing(launcher: str, missing: Sequence[str], how: str) -> None:
    if not missing:
        return
    words = f"{launcher} needs what is not here: {', '.join(missing)}. {how}"
    if launcher in os.environ.get(DECLARED, "").split(","):
        pytest.fail(f"{DECLARED} says that this machine has it, but {words}", pytrace=False)
    pytest.skip(words)
