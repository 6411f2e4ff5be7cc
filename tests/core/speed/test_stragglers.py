from __future__ import annotations

from core.speed.stragglers import straggler
from core.vocabulary.progress import Progress
from tests.core.cluster.laptops import ANNA, BEN, CLEO


def told(wait_s: float | None, step_s: float | None = 0.040, fit: int = 0, at_s: float = 0.0) -> Progress:
    return Progress(at_s=at_s, fit=fit, epoch=0, epochs=1, step=7, batch=7, step_s=step_s, wait_s=wait_s)


def test_the_member_that_waits_least_is_the_one_that_the_others_wait_for() -> None:
    found = straggler({ANNA: told(0.016), BEN: told(0.004), CLEO: told(0.010)})
    assert found is not None
    assert found.device == BEN
    assert {device: round(wait_s, 6) for device, wait_s in found.waits_s.items()} == {
        ANNA: 0.012,
        CLEO: 0.006,
    }
    assert round(found.part, 6) == 0.3


def test_what_all_wait_alike_is_the_wire_and_nobodys_fault() -> None:
    assert straggler({ANNA: told(0.030), BEN: told(0.029)}) is None


def test_a_little_unevenness_names_nobody() -> None:
    assert straggler({ANNA: told(0.0039), BEN: told(0.0)}) is None
    assert straggler({ANNA: told(0.0009, step_s=0.002), BEN: told(0.0, step_s=0.002)}) is None


def test_nothing_is_said_before_every_member_has_told_its_times() -> None:
    assert straggler({}) is None
    assert straggler({ANNA: told(0.0)}) is None
    assert straggler({ANNA: told(0.020), BEN: None}) is None
    assert straggler({ANNA: told(0.020), BEN: told(None)}) is None
    assert straggler({ANNA: told(0.020), BEN: told(0.0, step_s=0.0)}) is None
    assert straggler({ANNA: told(0.020), BEN: told(0.0, fit=1)}) is None


def test_clocks_that_differ_do_not_matter() -> None:
    found = straggler({ANNA: told(0.020, at_s=0.0), BEN: told(0.0, at_s=1e9)})
    assert found is not None and found.device == BEN
