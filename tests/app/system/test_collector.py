import gc
import weakref
from collections.abc import Iterator

import pytest

from app.system import collector


class Knot:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.myself = self


@pytest.fixture
def taken_over() -> Iterator[None]:
    gc.collect()
    collector.take_over()
    yield
    gc.enable()


def make_many() -> list[list[int]]:
    return [[] for _ in range(2 * collector.THRESHOLDS[0])]


@pytest.mark.usefixtures("taken_over")
def test_nothing_is_collected_until_it_looks() -> None:
    knot = weakref.ref(Knot())
    kept = make_many()
    assert knot() is not None
    collector.look()
    assert knot() is None
    assert kept


@pytest.mark.usefixtures("taken_over")
def test_a_look_at_little_that_is_new_costs_nothing() -> None:
    knot = weakref.ref(Knot())
    collector.look()
    assert knot() is not None


@pytest.mark.usefixtures("taken_over")
def test_garbage_that_grew_old_goes_in_the_end() -> None:
    knot = Knot()
    old = weakref.ref(knot)
    gc.collect(0)
    gc.collect(1)
    del knot
    kept: list[list[list[int]]] = []
    while old() is not None and len(kept) < 100:
        kept.append(make_many())
        collector.look(thresholds=(700, 2, 3))
    assert old() is None
    assert len(kept) > 6
