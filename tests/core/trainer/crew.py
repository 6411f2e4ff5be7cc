"""Members of whole runs for tests: real trainers that connect over TLS, each in its own folder, as on
laptops.

TensorFlow is loaded once per member (``many_runs``); each script is then a separate run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
import numpy as np

from core.vocabulary.phases import Exit
from core.vocabulary.trainer_messages import Report, Said, Train
from tests.core.trainer.attended import cluster, keys_for

LIMIT_S = 240.0
NOBODYS = 9
"""A port without a listener."""
SCRIPT = "train.py"
HARM = "harm.py"


@dataclass(frozen=True)
class Ran:
    """The results of one run: by rank, its exit, its messages, and its folder. And how long it took."""

    exits: list[Exit]
    said: list[list[Said]]
    folders: list[Path]
    took_s: float

    def words(self) -> list[str]:
        """Messages from any member."""
        return sorted({said.words for each in self.said for said in each})


@dataclass
class Crew:
    """Persistent members: ``run`` gives them one script after the other."""

    processes: list[subprocess.Popen[bytes]]
    folders: list[Path]
    shares: tuple[int, ...]
    runs: int = 0

    def run(
        self,
        text: str,
        *arguments: str,
        harm: Mapping[int, str] = MappingProxyType({}),
        names: tuple[str, ...] = (),
        shut: int | None = None,
        limit_s: float = LIMIT_S,
        **files: str,
    ) -> Ran:
        """``files``: in the chief's folder only, beside the script, by name with ``_`` for the dot. ``harm``:
        changes to a member's Tandem before the run, by rank. ``names``: of laptops; otherwise their tasks.
        ``shut``: the rank of a member of two that nobody can call."""
        keys = keys_for(len(self.shares))
        tasks = cluster(chief=1, worker=len(self.shares) - 1)
        works = [folder / f"run-{self.runs}" for folder in self.folders]
        for rank, (task, config) in enumerate(tasks.items()):
            works[rank].mkdir()
            (works[rank] / SCRIPT).write_text(text)
            if rank in harm:
                (works[rank] / HARM).write_text(harm[rank])
            for name, content in files.items() if rank == 0 else ():
                (works[rank] / name.replace("_", ".")).write_text(content)
            if shut is not None and shut != rank:
                at = json.loads(config)
                at["cluster"]["worker" if shut else "chief"] = [f"127.0.0.1:{NOBODYS}"]
                config = json.dumps(at)
            order = Train(
                run=f"run-{self.runs}",
                task=task,
                folder=str(works[rank]),
                script=SCRIPT,
                arguments=arguments,
                tf_config=config,
                rank=rank,
                shares=self.shares,
                seed=7,
                exchange=keys[rank],
                names=names or tuple(tasks),
                meet_timeout_s=LIMIT_S,
            )
            pipe = self.processes[rank].stdin
            assert pipe is not None
            pipe.write(msgspec.json.encode(order) + b"\n")
            pipe.flush()
        left = [folder / f"{self.runs}.exit" for folder in self.folders]
        began_s = time.monotonic()
        self.runs += 1
        while not all(each.exists() for each in left):
            assert time.monotonic() < began_s + limit_s, self.last_words()
            assert all(process.poll() is None for process in self.processes), self.last_words()
            time.sleep(0.05)
        took_s = time.monotonic() - began_s
        exits = [msgspec.json.decode(each.read_bytes(), type=Exit) for each in left]
        return Ran(exits, [_said(each.with_suffix(".reports")) for each in left], works, took_s)

    def last_words(self) -> str:
        return "\n".join((folder / "log").read_text()[-4000:] for folder in self.folders)


def _said(reports: Path) -> list[Said]:
    every: list[Any] = [msgspec.json.decode(line, type=Report) for line in reports.read_bytes().splitlines()]
    return [report for report in every if isinstance(report, Said)]


@contextmanager
def crew(out: Path, shares: tuple[int, ...]) -> Iterator[Crew]:
    folders = [out / f"rank{rank}" for rank in range(len(shares))]
    with ExitStack() as stack:
        processes = []
        for folder in folders:
            folder.mkdir()
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.core.trainer.many_runs", str(folder)],
                stdin=subprocess.PIPE,
                stdout=stack.enter_context((folder / "log").open("wb")),
                stderr=subprocess.STDOUT,
                env=_environment(),
            )
            stack.callback(_end, process)
            processes.append(process)
        yield Crew(processes, folders, shares)


def plain(folder: Path, text: str) -> Path:
    """The script in plain Keras, in the new ``folder``."""
    folder.mkdir()
    (folder / SCRIPT).write_text(text)
    subprocess.run(
        [sys.executable, SCRIPT],
        cwd=folder,
        env=_environment(),
        check=True,
        timeout=LIMIT_S,
        capture_output=True,
    )
    return folder


def weights(folder: Path) -> list[np.ndarray]:
    """The script's output of ``np.savez("weights.npz", *model.get_weights())``."""
    with np.load(folder / "weights.npz") as left:
        return [left[name] for name in left.files]


def apart(one: Path, other: Path) -> float:
    """The largest difference of any weight."""
    ones, others = weights(one), weights(other)
    assert [each.shape for each in ones] == [each.shape for each in others]
    return max(float(np.abs(a - b).max()) for a, b in zip(ones, others, strict=True))


def _environment() -> dict[str, str]:
    quiet = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONHASHSEED": "0"}
    return {**os.environ, **quiet, "TF_NUM_INTRAOP_THREADS": "1"}


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin:
        process.stdin.close()
