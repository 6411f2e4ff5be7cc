"""Which phases are ends."""

from typing import get_args

from core.vocabulary import phases
from tests.core.samples import sample


def test_a_phase_is_an_end_exactly_if_no_phase_follows() -> None:
    for kind in get_args(phases.Phase):
        assert phases.ended(sample(kind)) is (phases.NEXT[kind] == ())
