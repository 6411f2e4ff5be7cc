"""Laptops that stay on: paired with the first, allowed to run its code, mended before each test."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import resources
from core.vocabulary.commands import SetCodePolicy
from core.vocabulary.phases import Phase
from core.vocabulary.plan import RunSpec
from core.vocabulary.state import State
from tests.lab.agent import Agent
from tests.lab.lab import linked, pair

EXAMPLE = Path(resources.__file__).parent / "examples" / "digits"


class Laptops:
    """``anna`` starts the runs; the others allow whatever she sends. ``start``: switches one of them on."""

    def __init__(self, start: Callable[[int], Agent], count: int) -> None:
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

    def restart(self, number: int) -> Agent:
        """Switch a laptop off, if it is on, and on again."""
        self._agents[number].end()
        self._agents[number] = self._start(number)
        return self._agents[number]

    def mend(self) -> None:
        """After a test, whatever it left: every agent is on, idle and connected."""
        for number, agent in enumerate(self._agents):
            if not agent.process_lives or (agent.state.run is not None and not agent.run().over):
                self.restart(number)
        for other in self._agents[1:]:
            linked(self.anna, other)
        for agent in self._agents:
            agent.until(_all_idle, "see everybody idle")


def digits(folder: Path, *arguments: str, others: tuple[Agent, ...]) -> RunSpec:
    """The shipped example, unmodified, in a folder where its outputs may land; with these other laptops."""
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__", "*.keras"))
    return RunSpec(
        script=str(folder / "digits.py"),
        arguments=arguments,
        devices=tuple(other.device for other in others),
        seed=7,
    )


def weights(agent: Agent) -> dict[str, str]:
    """Each member's digest of the last run's weights, as this agent knows it: by the member's name."""
    present = agent.run()
    return {
        present.plan.member(device).name: end.weights_sha256
        for device, member in present.members.items()
        for end in member.exits.values()
    }


def reason(phase: Phase) -> str:
    """Why a run failed: the whole sentence with its mend."""
    problem = getattr(phase, "problem", None)
    assert problem is not None, phase
    assert problem.what and problem.fix, problem
    return f"{problem.code}: {problem}"


def _all_idle(state: State) -> bool:
    return not any(device.linked and device.busy for device in state.devices.values())
