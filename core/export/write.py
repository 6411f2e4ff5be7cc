"""Writes a job's files into a new folder: resources/jobs' templates, filled in. Blocks: use a thread."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING

from msgspec import structs

from core.export.job import Job, Launcher, check, new_secret
from core.home.private_file import write_new
from core.project.copy import storing
from core.vocabulary.errors import TandemError
from core.vocabulary.paths import shown
from core.vocabulary.versions import ROOT, TANDEM

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = ROOT / "resources" / "jobs"
_FILES: dict[Launcher, tuple[str, ...]] = {
    "slurm": ("job.sbatch",),
    "kubernetes": ("job.yaml", "secret.yaml"),
    "ray": ("driver.py",),
}
_STARTS: dict[Launcher, str] = {
    "slurm": "sbatch {}/job.sbatch",
    "kubernetes": "kubectl apply -f {}",
    "ray": "python {}/driver.py",
}
_MOUNT = PurePosixPath("/tandem")
"""The mount point of the shared volume in a pod."""
_PROJECT = _MOUNT / "project"


@dataclass(frozen=True, slots=True)
class Written:
    """A job's files. ``files``: in ``folder``; the first one starts the job. ``start``: the command to start
    it."""

    folder: Path
    files: tuple[Path, ...]
    start: str


def folder_of(script: PurePath, launcher: Launcher) -> Path:
    """A job's default folder: beside its script."""
    return Path(script).with_name(f"{script.stem}-{launcher}")


def write(job: Job, launcher: Launcher, folder: Path) -> Written:
    """Write a job's files. Raises ``TandemError`` for an impossible job, an existing ``folder``, a full disk.

    The folder is neither sent with the script's project nor added to a repository: it contains the secret,
    and later the checkpoints.
    """
    check(job)
    secret = new_secret()
    texts = {name: _filled(name, job, launcher, folder, secret) for name in _FILES[launcher]}
    if launcher != "kubernetes":
        texts["secret"] = f"{secret}\n"
    with storing(folder.parent):
        try:
            folder.mkdir(parents=True, mode=0o700)
        except FileExistsError as error:
            raise TandemError(
                code="exists",
                what=f"{shown(str(folder))} already exists.",
                fix="Remove it, if its job is over, or name another folder: --out DIR.",
            ) from error
        for name, text in ({".gitignore": "*\n"} | texts).items():
            write_new(folder / name, text.encode(), 0o600 if name.startswith("secret") else 0o644)
    return Written(folder, tuple(folder / name for name in texts), _start(launcher, folder))


def _start(launcher: Launcher, folder: Path) -> str:
    return _STARTS[launcher].format(shlex.quote(str(folder)))


def _filled(name: str, job: Job, launcher: Launcher, folder: Path, secret: str) -> str:
    return (
        _environment()
        .get_template(f"{name}.jinja")
        .render(
            job=job,
            command=_command(job, launcher, folder),
            folder=str(folder),
            mount=str(_MOUNT),
            project=str(_PROJECT),
            secret=secret,
            start=_start(launcher, folder),
            version=TANDEM,
        )
    )


def _command(job: Job, launcher: Launcher, folder: Path) -> list[str]:
    if launcher == "kubernetes":
        # Kubernetes restarts whatever ends with a status other than 0, including a finished training.
        job = replace(job, options=structs.replace(job.options, accept_differences=True))
        words = job.command(_PROJECT / job.script.name, lambda name: str(_MOUNT / name))
        return [word.replace("$(", "$$(") for word in words]  # literal, not a variable's value
    words = job.command(job.script, lambda name: str(folder / name))
    at = words.index("--seed")
    return [*words[:at], "--secret", str(folder / "secret"), *words[at:]]


@cache
def _environment() -> Environment:
    # Not with the module: Jinja2 takes 25 ms, and few commands write a job.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters.update(shell=_shell, text=json.dumps, python=repr)
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment


def _shell(words: str | list[str]) -> str:
    return shlex.quote(words) if isinstance(words, str) else shlex.join(words)
