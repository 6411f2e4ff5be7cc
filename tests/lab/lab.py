"""Two or three laptops on this one machine: ``with Lab(hosts=2) as lab: lab.agent(0), lab.agent(1)``.

The agents are real ones with real homes; the network between them is as fast as a cable of the given rate. To
run anything else on a laptop (a window, say), put ``lab.enter(host)`` before its command line.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

from core.home.home import Home
from core.vocabulary.commands import AnswerPairing, Pair
from core.vocabulary.settings import Settings
from core.vocabulary.state import State
from tests.lab.agent import TANDEM, Agent
from tests.lab.network import BUFFER_S, RATE, Network

NAMES = ("anna", "ben", "cleo")


class Lab:
    """``folder`` contains the homes; ``program`` as in ``Agent``. Everything started ends with it."""

    def __init__(
        self,
        folder: Path,
        *,
        hosts: int = 2,
        rate: str = RATE,
        buffer_s: float = BUFFER_S,
        program: Sequence[str] = TANDEM,
    ) -> None:
        self.folder = folder
        self._program = program
        self.network = Network(hosts, rate, buffer_s)
        self._ends = ExitStack()
        self._ends.callback(self.network.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self._ends.close()

    def enter(self, host: int) -> tuple[str, ...]:
        """A command line prefix that runs the command on that laptop."""
        return self.network.enter(host)

    def home(self, host: int) -> Home:
        return Home(self.folder / NAMES[host])

    def agent(self, host: int, *options: str, **chosen: Any) -> Agent:
        """An agent on that laptop, ready. ``chosen``: settings. Started again, it finds its old home."""
        settings = Settings(name=NAMES[host], first_run_done=True, **chosen)
        agent = Agent(
            self.home(host),
            enter=self.enter(host),
            options=options,
            settings=settings,
            program=self._program,
        )
        return self._ends.enter_context(agent)


def find(one: Agent, other: Agent) -> str:
    """Waits until one shows the other by mDNS. Returns its address."""

    def seen(state: State) -> str | None:
        device = state.devices.get(other.device)
        return device.addresses[0] if device is not None and device.seen else None

    return one.until(seen, f"find {other.name}")


def pair(one: Agent, other: Agent, address: str = "") -> str:
    """Pairs like two people: compare the code, and say *Same*. Both are linked then. Returns the code."""
    one.do(Pair(address=address) if address else Pair(device=other.device))
    codes = {agent.name: agent.until(_code, "show the code") for agent in (one, other)}
    assert len(set(codes.values())) == 1, codes
    for agent in (one, other):
        agent.do(AnswerPairing(same=True))
    for agent in (one, other):
        agent.until(_has_paired, "store the pairing")
    linked(one, other)
    return codes[one.name]


def linked(one: Agent, other: Agent) -> None:
    """Waits until both are connected."""
    for here, there in ((one, other), (other, one)):
        here.until(partial(is_linked, device=there.device), f"connect with {there.name}")


def is_linked(state: State, device: object) -> bool:
    return any(found.device == device and found.linked for found in state.devices.values())


def _has_paired(state: State) -> bool:
    return state.pairing is not None and state.pairing.stage == "done"


def _code(state: State) -> str | None:
    if state.pairing is None or state.pairing.stage != "comparing":
        return None
    return state.pairing.code
