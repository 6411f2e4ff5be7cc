"""The exactness matrix: scenarios x members, on real clusters, against one plain Keras process.

Every scenario runs at the shares (48, 16), (40, 16, 8) and (63, 1), those marked `core` also at (32, 32).
`make test` runs them at (48, 16), and of those that run once the core; `make test-all` runs all of them, also
at the other shares and within walls. At (48, 16) only the core is calibrated before its first step. Members
meet over TLS; for some scenarios by TensorFlow's collectives, too. In each cell the members must end with the
same bits (weights, the state of an optimizer, values a script sees), and, unless the scenario says
`exact=False`, the weights within 2e-6 of the plain process. What starts with `value/per_rank/` is true on the
chief alone.

A set of processes runs through all scenarios whose cells were asked for, once; the first test of each set
waits for it.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.exactness.matrix import (
    CELLS,
    EVEN,
    EXTREME,
    NAMES,
    THREE,
    UNEVEN,
    WALLED,
    Cell,
    Matrix,
    Members,
    Told,
    difference,
    left_out,
    named,
)
from tests.exactness.names import CORE, EVERY, SCENARIOS

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3600)]
done: dict[Cell, float] = {}
"""The largest difference of a weight in each cell that ran to its end."""
heard: dict[Cell, Told] = {}
"""The messages in each cell."""


def compared(arrays: dict[str, np.ndarray]) -> set[str]:
    """The arrays compared with the plain process; an optimizer's state is compared between members only."""
    return {key for key in arrays if not key.startswith("state/")}


def case(cell: Cell) -> object:
    marks = [pytest.mark.complete] if left_out(cell) else []
    return pytest.param(*cell, id=named(cell), marks=marks)


@pytest.mark.parametrize(("name", "members"), [case(cell) for cell in CELLS])
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


@pytest.mark.parametrize(("name", "members"), [case(cell) for cell in CELLS])
def test_what_is_not_shared_is_reported_and_nothing_else(matrix: Matrix, name: str, members: Members) -> None:
    heard[name, members] = matrix.ran(members).result().told(name)
    said, differences, gathers, sent_bits = heard[name, members]
    expected = SCENARIOS[name].told
    assert bool(said) == bool(expected), said
    assert all(expected in words for words in said), said
    assert bool(differences) == SCENARIOS[name].differs, f"whether it ends green: {said}"
    assert gathers == SCENARIOS[name].gathers, "predictions are gathered where that is needed, and only there"
    assert set(sent_bits) <= {0}, "gradients travel in all their bits"


def test_members_on_unlike_devices_compute_there_and_end_a_fit_as_the_chief(matrix: Matrix) -> None:
    """Two devices may round the same update differently."""
    ran = matrix.ran(EVEN).result()
    folders = ran.last
    assert folders, ran.failures
    chief, worker = (dict(np.load(folder / "unlike.npz")) for folder in folders)
    assert all(device.endswith("CPU:1") for device in worker["devices"]), worker["devices"]
    assert not any(device.endswith("CPU:1") for device in chief["devices"]), chief["devices"]
    assert difference(chief["during/0"], worker["during/0"]) > 0, "nothing drove them apart"
    for key in (key for key in chief if key.startswith("after/")):
        assert difference(chief[key], worker[key]) == 0.0, key


@pytest.mark.skipif(WALLED not in NAMES, reason="this system has no walls")
def test_members_within_walls_reach_nothing_of_their_user(matrix: Matrix) -> None:
    ran = matrix.ran(WALLED).result()
    folders = {folder for each in ran.folders.values() for folder in each}
    assert folders or not matrix.names.get(WALLED)
    assert [folder for folder in folders if not (folder / "walled").exists()] == []


def test_no_set_broke_behind_its_last_scenario(matrix: Matrix) -> None:
    assert not [members for members in matrix.names if matrix.ran(members).result().broken_after]


def test_every_cell_that_was_asked_for_ran(matrix: Matrix, capsys: pytest.CaptureFixture[str]) -> None:
    cells = [(name, members) for members, names in matrix.names.items() for name in names]
    missing = [cell for cell in cells if cell not in done]
    ran = len(cells) - len(missing)
    with capsys.disabled():
        print(f"\nexactness matrix: {ran} of {len(cells)} cells ran, {len(EVERY)} scenarios")
        for members in matrix.names:
            apart = {name: worst for (name, m), worst in done.items() if m == members}
            exact = [worst for name, worst in apart.items() if SCENARIOS[name].exact]
            print(f"  {members}: {len(apart)} cells, largest difference {max(exact, default=0.0):.1e}")
        quiet = [cell for cell in cells if cell in heard and not SCENARIOS[cell[0]].told]
        alarms = {cell: heard[cell].words for cell in quiet if heard[cell].words}
        print(f"  false alarms: {len(alarms)} in {len(quiet)} cells of which nothing is to be told")
    assert not missing, f"{len(missing)} cells did not run or failed: {missing}"
    assert not alarms, alarms


def test_what_is_not_exact_does_not_end_green() -> None:
    inexact = [name for name, named in SCENARIOS.items() if not named.exact and not named.near]
    assert inexact and all(SCENARIOS[name].differs for name in inexact)


def test_every_scenario_runs_at_two_unequal_shares_and_the_core_at_four() -> None:
    assert all((name, members) in CELLS for name in EVERY for members in (UNEVEN, THREE))
    assert len(set(EVERY) - set(NAMES[EXTREME])) <= 1
    assert all((name, EVEN) in CELLS for name in CORE)
    assert len(CORE) >= 30
