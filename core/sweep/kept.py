"""Sweeps on the disk: one folder each, with the sweep and its project's manifest. Blocks: use a thread."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from core.home.private_file import write_atomically
from core.runtime.removal import remove_tree
from core.vocabulary import run_folder, wire
from core.vocabulary.ids import SweepId
from core.vocabulary.manifest import Manifest
from core.vocabulary.sweep import Sweep

SWEEP = "sweep.json"
_MODELS = (".keras", ".h5", ".hdf5")


def write(folder: Path, sweep: Sweep) -> None:
    """Raises ``OSError``."""
    place = folder / sweep.sweep
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(place / SWEEP, wire.to_json(sweep))


def write_project(folder: Path, sweep: SweepId, project: Manifest) -> None:
    """Raises ``OSError``."""
    place = folder / sweep
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_atomically(place / run_folder.PROJECT, wire.to_json(project))


def find(folder: Path, beginning: str) -> Sweep | None:
    """The newest sweep whose id begins like this. None: there is none, or it cannot be read."""
    names = sorted((each.parent.name for each in folder.glob(f"*/{SWEEP}")), reverse=True)
    for name in names:
        if name.startswith(beginning):
            with contextlib.suppress(OSError, msgspec.DecodeError):
                return wire.from_json((folder / name / SWEEP).read_bytes(), Sweep)
    return None


def project_of(folder: Path, sweep: SweepId) -> Manifest | None:
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return wire.from_json((folder / sweep / run_folder.PROJECT).read_bytes(), Manifest)
    return None


def delete_models(run: Path) -> None:
    """Delete the models in a run's folder, saved by Tandem or the script, and its checkpoints."""
    outputs = run / run_folder.OUTPUTS
    for folder in (outputs / run_folder.TRAINED, run / run_folder.CHECKPOINTS):
        remove_tree(folder)
    for path in outputs.rglob("*"):
        if path.suffix in _MODELS and path.is_file():
            with contextlib.suppress(OSError):
                path.unlink()
