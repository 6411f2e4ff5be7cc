"""Two laptops on this machine behind a cable of so many megabits a second, in each direction at once.

    with Link(240) as link, Pair("tandem", "5m", link=link, wire="bf16") as pair:
        pair.train(1)

Any process joins a side by ``link.enter(rank)`` before its command line, and reaches the other at
``link.address(rank)``. Whole nodes behind such a cable: ``tests.lab.lab.Lab(folder, rate="240mbit")``.
"""

from __future__ import annotations

import itertools
from types import TracebackType
from typing import Self

from core.cluster.make_plan import FIRST_PORT
from tests.lab.network import Network, NoLab

FREE_MBIT = 20_000
"""More than two processes on one machine can exchange: practically no limit."""


class Link:
    """Separate network namespaces, joined by a switch. ``mbit``: what TCP gets. Ends on leaving.

    Raises ``RuntimeError`` if this system allows no network namespaces. Several pairs may share a link, each
    with its own ports, as long as they take turns.
    """

    def __init__(self, mbit: int = FREE_MBIT, members: int = 2) -> None:
        self.mbit = mbit
        try:
            self._network = Network(members, f"{mbit}mbit")
        except NoLab as refusal:
            raise RuntimeError(str(refusal)) from refusal
        self._ports = itertools.count(FIRST_PORT)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._network.close()

    def enter(self, rank: int) -> tuple[str, ...]:
        """The prefix of a command line that runs it on that side, in the current folder."""
        return self._network.enter(rank)

    def address(self, rank: int) -> str:
        """That side's IP address."""
        return self._network.address(rank)

    def place(self, rank: int) -> str:
        """``address:port`` on that side; a new port each time, as nobody else listens there."""
        return f"{self.address(rank)}:{next(self._ports)}"
