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


def test_a_wait_that_all_share_is_the_wires_and_nobodys_fault() -> None:
    assert straggler({ANNA: told(0.030), BEN: told(0.029)}) is None


def test_a_little_unevenness_names_nobody() -> None:
    assert straggler({ANNA: told(0.0039), BEN: told(0.0)}) is None
    assert straggler({ANNA: told(0.0009, step_s=0.002), BEN: told(0.0, step_s=0.002)}) is None


def test_waits_of_a_tenth_of_a_step_and_of_a_millisecond_are_clear() -> None:
    long = straggler({ANNA: told(0.0041), BEN: told(0.0)})
    assert long is not None and long.waits_s == {ANNA: 0.0041}
    short = straggler({ANNA: told(0.0011, step_s=0.002), BEN: told(0.0, step_s=0.002)})
    assert short is not None and short.part == 0.0011 / 0.002


def test_the_longest_step_is_the_measure_of_a_wait() -> None:
    assert straggler({ANNA: told(0.005, step_s=0.040), BEN: told(0.0, step_s=0.060)}) is None
    found = straggler({ANNA: told(0.030, step_s=0.040), BEN: told(0.0, step_s=0.060)})
    assert found is not None and found.step_s == 0.060 and found.part == 0.5


def test_nobody_is_named_before_every_member_has_reported_its_times() -> None:
    assert straggler({}) is None
    assert straggler({ANNA: told(0.0)}) is None
    assert straggler({ANNA: told(0.020), BEN: None}) is None
    assert straggler({ANNA: told(0.020), BEN: told(None)}) is None
    assert straggler({ANNA: told(0.020), BEN: told(0.0, step_s=0.0)}) is None
    assert straggler({ANNA: told(0.020), BEN: told(0.0, fit=1)}) is None


def test_clocks_that_differ_do_not_matter() -> None:
    found = straggler({ANNA: told(0.020, at_s=0.0), BEN: told(0.0, at_s=1e9)})
    assert found is not None and found.device == BEN
