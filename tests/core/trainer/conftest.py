"""Persistent members, shared by all tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.core.trainer.crew import Crew, crew


@pytest.fixture(scope="package")
def crews(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[tuple[int, ...]], Crew]]:
    """Members with these shares; each number of members is started once."""
    started: dict[int, Crew] = {}
    with ExitStack() as stack:

        def of(shares: tuple[int, ...]) -> Crew:
            if len(shares) not in started:
                place = tmp_path_factory.mktemp("crew")
                started[len(shares)] = stack.enter_context(crew(place, shares))
            found = started[len(shares)]
            found.shares = shares
            return found

        yield of
