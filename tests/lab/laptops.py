"""Laptops that stay on: paired with the first, allowed to run its code, repaired before each test."""

from __future__ import annotations

import io
import json
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import resources
from core.vocabulary.commands import SetCodePolicy
from core.vocabulary.ids import RunId
from core.vocabulary.phases import Phase
from core.vocabulary.plan import RunSpec
from core.vocabulary.run_folder import LOGS
from core.vocabulary.state import State
from tests.lab.agent import LIMIT_S, Agent
from tests.lab.lab import linked, pair

EXAMPLE = Path(resources.__file__).parent / "examples" / "digits"
_BATCHES = "batches: "


class Laptops:
    """``anna`` starts the runs; the others allow whatever she sends. ``start``: switches one of them on."""

    def __init__(self, start: Callable[..., Agent], count: int) -> None:
        self._start = start
        self._agents = [start(number) for number in range(count)]
        for other in self._agents[1:]:
            assert other.state.me is not None
            pair(self.anna, other, other.state.me.addresses[0])
            other.do(SetCodePolicy(device=self.anna.device, policy="always"))

    @property
    def anna(self) -> Agent:
        return self._agents[0]

    @property
    def ben(self) -> Agent:
        return self._agents[1]

    @property
    def cleo(self) -> Agent:
        return self._agents[2]

    def first(self, count: int) -> tuple[Agent, ...]:
        return tuple(self._agents[:count])

    def restart(self, number: int, **chosen: Any) -> Agent:
        """Switches a laptop off, if it is on, and on again. ``chosen``: settings."""
        self._agents[number].end()
        self._agents[number] = self._start(number, **chosen)
        return self._agents[number]

    def mend(self) -> None:
        """Restores the state after a test: every agent is on, idle and connected."""
        for number, agent in enumerate(self._agents):
            if not agent.process_lives or (agent.state.run is not None and not agent.run().over):
                self.restart(number)
        for other in self._agents[1:]:
            linked(self.anna, other)
        for agent in self._agents:
            agent.until(all_idle, "see everybody idle")


def digits(folder: Path, *arguments: str, others: tuple[Agent, ...]) -> RunSpec:
    """The unmodified shipped example, in a folder where its outputs may land; with these other laptops."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "*.keras"))
    return RunSpec(
        script=str(folder / "digits.py"),
        arguments=arguments,
        devices=tuple(other.device for other in others),
        seed=7,
    )


def weights(agent: Agent) -> dict[str, str]:
    """Each member's digest of the last run's weights, as known to this agent: by the member's name."""
    present = agent.run()
    return {
        present.plan.member(device).name: end.weights_sha256
        for device, member in present.members.items()
        for end in member.exits.values()
    }


def batches(agent: Agent, run: RunId) -> np.ndarray:
    """By epoch: the digest of the sequence of batches that the run has trained with, as every member's script
    that came to its end printed it there (``scripts/naps.py``)."""
    summary = agent.run().summary
    assert summary is not None and summary.weights_sha256
    logs, until_s = agent.home.runs / run / LOGS, time.monotonic() + LIMIT_S
    while True:  # the others' output is written after the end is reported
        texts = [log.read_text(errors="replace") for log in logs.glob("*.log")]
        said = [line for text in texts for line in text.splitlines() if line.startswith(_BATCHES)]
        if len(said) >= len(summary.weights_sha256):
            break
        assert time.monotonic() < until_s, said
        time.sleep(0.05)
    (digest,) = set(said)
    return np.array(json.loads(digest.removeprefix(_BATCHES)), dtype=np.float64)


def trained(agent: Agent, run: RunId) -> dict[str, np.ndarray]:
    """The weights of the model that its node saved, by their path in the file, and ``batches``."""
    model = agent.home.runs / run / "outputs" / "trained" / "model.keras"
    return saved(model) | {"batches": batches(agent, run)}


def saved(model: Path) -> dict[str, np.ndarray]:
    """Every array of a saved model, by its path in the file."""
    found: dict[str, np.ndarray] = {}

    def keep(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = np.array(item, dtype=np.float64)

    with zipfile.ZipFile(model) as archive, h5py.File(io.BytesIO(archive.read("model.weights.h5"))) as file:
        file.visititems(keep)
    return found


def reason(phase: Phase) -> str:
    """Why a run failed: the whole sentence with its fix."""
    problem = getattr(phase, "problem", None)
    assert problem is not None, phase
    assert problem.what and problem.fix, problem
    return f"{problem.code}: {problem}"


def all_idle(state: State) -> bool:
    return not any(device.linked and device.busy for device in state.devices.values())
