"""The exactness matrix: scenarios x members, on real clusters, against one plain Keras process.

Every scenario runs at the unequal shares (48, 16) and (40, 16, 8); those marked `core` also at (32, 32) and
(63, 1), in `make test-all`. Members meet over TLS; for some scenarios by TensorFlow's collectives, too. In
each cell the members must end with the same bits (weights, optimizer's state, values a script sees), and,
unless the scenario says `exact=False`, the weights within 2e-6 of the plain process. What starts with
`value/per_rank/` is checked by the scenario's own rule: true on the chief alone.

A set of processes runs through all scenarios whose cells were asked for, once; the first test of each set
waits for it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.exactness.matrix import (
    CELLS,
    COMPLETE,
    EVEN,
    EXTREME,
    NAMES,
    THREE,
    UNEVEN,
    Cell,
    Matrix,
    Members,
    difference,
)
from tests.exactness.names import CORE, EVERY, SCENARIOS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]
done: dict[Cell, float] = {}
"""The largest difference of a weight in each cell that ran to its end."""


def compared(arrays: dict[str, np.ndarray]) -> set[str]:
    """What is compared with the plain process; an optimizer's state is compared between members only."""
    return {key for key in arrays if not key.startswith("state/")}


def case(name: str, members: Members) -> object:
    marks = [pytest.mark.complete] if members in COMPLETE else []
    return pytest.param(name, members, id=f"{name}-{members}", marks=marks)


@pytest.mark.parametrize(("name", "members"), [case(*cell) for cell in CELLS])
def test_members_are_equal_and_as_one_process(matrix: Matrix, name: str, members: Members) -> None:
    left = matrix.ran(members).result().arrays(name)
    plain = matrix.plain(name)
    for rank, member in enumerate(left):
        assert compared(member) == compared(plain), f"member {rank} left other arrays than one process"
        assert set(member) == set(left[0]), f"member {rank} left other arrays than the chief"
        for key, array in member.items():
            if key.startswith("value/per_rank/"):
                assert np.array_equal(array, plain[key] & (rank == 0)), f"{key} on member {rank}"
            else:
                assert difference(array, left[0][key]) == 0.0, f"{key}: member {rank} is not the chief"
    worst = 0.0
    for key, array in left[0].items():
        kind = key.split("/")[0]
        if kind == "state" or key.startswith("value/per_rank/"):
            continue
        apart = difference(array, plain[key])
        if SCENARIOS[name].exact or SCENARIOS[name].near:
            limit = SCENARIOS[name].tolerance if kind == "weight" else SCENARIOS[name].values_tolerance
            assert apart <= limit, f"{key} is {apart:.2e} from one process, more than {limit:.0e}"
        worst = max(worst, apart if kind == "weight" else 0.0)
    done[name, members] = worst


def test_members_on_unlike_devices_compute_there_and_end_a_fit_as_the_chief(matrix: Matrix) -> None:
    """Two devices may round the same update in two ways."""
    folders = matrix.ran(EVEN).result().last
    assert folders, matrix.ran(EVEN).result().failures
    chief, worker = (dict(np.load(folder / "unlike.npz")) for folder in folders)
    assert all(device.endswith("CPU:1") for device in worker["devices"]), worker["devices"]
    assert not any(device.endswith("CPU:1") for device in chief["devices"]), chief["devices"]
    assert difference(chief["during/0"], worker["during/0"]) > 0, "nothing drove them apart"
    for key in (key for key in chief if key.startswith("after/")):
        assert difference(chief[key], worker[key]) == 0.0, key


@pytest.mark.parametrize(
    "every",
    [
        pytest.param([members for members in NAMES if members not in COMPLETE], id="most"),
        pytest.param(list(NAMES), id="all", marks=pytest.mark.complete),
    ],
)
def test_every_cell_ran(every: list[Members], capsys: pytest.CaptureFixture[str]) -> None:
    cells = [cell for cell in CELLS if cell[1] in every]
    missing = [cell for cell in cells if cell not in done]
    ran = len(cells) - len(missing)
    with capsys.disabled():
        print(f"\nexactness matrix: {ran} of {len(cells)} cells ran, {len(EVERY)} scenarios")
        for members in every:
            apart = {name: worst for (name, m), worst in done.items() if m == members}
            exact = [worst for name, worst in apart.items() if SCENARIOS[name].exact]
            print(f"  {members}: {len(apart)} cells, largest difference {max(exact, default=0.0):.1e}")
    assert not missing, f"{len(missing)} cells did not run or failed: {missing}"


def test_every_scenario_runs_at_two_unequal_shares_and_the_core_at_four() -> None:
    assert all((name, members) in CELLS for name in EVERY for members in (UNEVEN, THREE))
    assert len(CORE) >= 20
    assert all((name, EXTREME) in CELLS for name in CORE)
    assert not {UNEVEN, THREE} & set(COMPLETE), "every scenario runs at two shares in `make test`, too"


def test_a_core_of_the_scenarios_runs_by_tensorflows_collectives_too() -> None:
    for members in (UNEVEN, THREE):
        assert members.exchange == "tls"
    by_tensorflow = [(name, len(m.shares)) for name, m in CELLS if m.exchange == "tensorflow"]
    assert len(by_tensorflow) >= 12
    assert {2, 3} == {count for _, count in by_tensorflow}
    assert not any(m.exchange == "tensorflow" for m in COMPLETE), "in `make test`, too"
