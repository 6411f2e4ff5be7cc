"""The matrix of rare meetings: ordinary scripts on two members that meet every 4 steps.

The scenarios are those of the exactness matrix, and a few of this matrix alone (`scenarios/meetings.py`),
which assert what docs/slow-networks.md promises. At each flush (an epoch's end, before validations, evaluate
and predict, a fit's end) members must hold the same bits; logs, predictions and the decisions of callbacks
must agree; and what cannot meet rarely must meet in every step, and be named with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exactness import processes
from tests.exactness.matrix import UNEVEN, Ran, difference, go_through
from tests.exactness.names import SCENARIOS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

EVERY = 4
"""Steps: fewer than an epoch of any scenario has, so that members also meet within epochs."""
RARELY = (
    # Callbacks.
    *("plateau_and_stop_by_the_validation", "model_checkpoint", "user_written"),
    "weights_that_a_callback_reads",
    # Optimizers.
    *("moving_averages_at_epochs_ends", "schedule_by_all_steps"),
)
EXACTLY = {"two_optimizers": "its train_step is the script's own"}
"""By scenario, why its members meet in every step. `two_optimizers` is a GAN."""
SHORTLY = ("plateau_and_stop_by_the_validation", "user_written", "schedule_by_all_steps", "two_optimizers")
"""In `make test`."""
LEAST = {"scenarios": 7, "flushes": 20, "meetings": 14}
"""What docs/slow-networks.md says of the whole matrix."""


def case(name: str) -> object:
    return pytest.param(name, id=name, marks=() if name in SHORTLY else pytest.mark.complete)


CASES = [case(name) for name in (*RARELY, *EXACTLY)]


@pytest.fixture(scope="module")
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """All scenarios that are tested in this session."""
    given = [getattr(item, "callspec", None) for item in request.session.items if item.path == Path(__file__)]
    names = dict.fromkeys(each.params["name"] for each in given if each is not None)

    def run(shares: tuple[int, ...], names: Sequence[str], out: Path, limit_s: float, **options: Any) -> Any:
        options["calibrated"] = ()  # the choice of an interval has tests of its own
        return processes.run(shares, names, out, limit_s, sync=f"rare={EVERY}", **options)

    return go_through(UNEVEN, list(names), tmp_path_factory.mktemp("rare"), run)


@pytest.mark.parametrize("name", CASES)
def test_members_agree_at_each_flush_and_in_what_a_script_sees(ran: Ran, name: str) -> None:
    chief, worker = ran.arrays(name)
    assert set(chief) == set(worker)
    for key, array in chief.items():
        match key.split("/")[1]:
            case "per_rank":
                assert array.all() and not worker[key].any(), key
            case "own":
                assert difference(array, worker[key]) > 0, f"{key}: nothing drove them apart"
            case _:
                assert np.array_equal(array, worker[key], equal_nan=array.dtype.kind == "f"), key
    assert (len(chief["flush/held"]) == 0) == (name in EXACTLY)


@pytest.mark.parametrize("name", CASES)
def test_how_members_meet_is_told_and_nothing_else(ran: Ran, name: str) -> None:
    said = ran.told(name).words
    how = f"which is exact, for .*{EXACTLY[name]}" if name in EXACTLY else "laptops meet every . steps"
    expected = [how, *([SCENARIOS[name].told] if name in SCENARIOS and SCENARIOS[name].told else [])]
    assert any(re.search(how, words) for words in said), said
    assert all(any(re.search(each, words) for each in expected) for words in said), said


def test_the_matrix_is_counted(ran: Ran, capsys: pytest.CaptureFixture[str]) -> None:
    names = [name for name in ran.folders if name not in ran.failures]
    arrays = [ran.arrays(name)[0] for name in names]
    count = {
        "scenarios": len(names),
        "flushes": sum(len(each["flush/held"]) for each in arrays),
        "meetings": sum(int(each["flush/meetings"]) for each in arrays),
    }
    with capsys.disabled():
        print(f"\nrare meetings: {', '.join(f'{number} {what}' for what, number in count.items())}")
    assert not ran.failures and not ran.broken_after
    if len(names) == len(CASES):
        assert all(count[what] >= least for what, least in LEAST.items())
