"""Sweeps on the disk: one folder each, with the sweep and its project's manifest. Blocks: use a thread."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from core.history.best import best_trial
from core.home.private_file import write_atomically
from core.runtime.removal import remove_tree
from core.sweep import problems
from core.vocabulary import run_folder, wire
from core.vocabulary.answers import RunEntry
from core.vocabulary.ids import RunId, SweepId, started_s
from core.vocabulary.manifest import Manifest
from core.vocabulary.phases import Failed, Finished, Phase, Stopped, Stopping, Training
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
    return next(find_all(folder, beginning), None)


def find_all(folder: Path, beginning: str = "") -> Iterator[Sweep]:
    """The readable ones, newest first."""
    for name in sorted((each.parent.name for each in folder.glob(f"*/{SWEEP}")), reverse=True):
        if name.startswith(beginning):
            with contextlib.suppress(OSError, msgspec.DecodeError):
                yield wire.from_json((folder / name / SWEEP).read_bytes(), Sweep)


def entry_of(sweep: Sweep, folder: Path, runs: Iterable[RunEntry]) -> RunEntry:
    """The sweep as one line of the history. ``runs``: those of its trials."""
    best = best_trial(sweep)
    run = next((each for each in runs if best is not None and each.run == best.run), None)
    return RunEntry(
        run=RunId(sweep.sweep),
        started_s=started_s(RunId(sweep.sweep), 0.0),
        script=sweep.script,
        source=sweep.spec.run.script,
        arguments=best.arguments if best is not None else (),
        devices=tuple(dict.fromkeys(trial.laptop for trial in sweep.trials if trial.laptop)),
        phase=_phase(sweep),
        folder=str(folder / sweep.sweep),
        name=sweep.name,
        note=sweep.note,
        best=best.best if best is not None else {},
        losses=run.losses if run is not None else (),
        trials=len(sweep.trials),
        failed_trials=sum(trial.status == "failed" for trial in sweep.trials),
    )


def _phase(sweep: Sweep) -> Phase:
    match sweep.phase:
        case "running":
            return Training()
        case "stopping":
            return Stopping()
        case "finished":
            return Finished()
        case "stopped":
            return Stopped()
    return Failed(problem=sweep.problem or problems.nobody())


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
