"""Over four days, everything that `make test` omits has its turn."""

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests import turns
from tests.exactness.matrix import (
    CELLS,
    EXTREME,
    NAMES,
    THREE,
    UNEVEN,
    Cell,
    Members,
    left_out,
    named,
    takes_turns,
)
from tests.exactness.names import EVERY, ONCE

NOON_S = 1_764_000_000
LEFT = [cell for cell in CELLS if takes_turns(cell)]
MATRIX = "tests/exactness/test_matrix.py"


def due(day: int) -> set[Cell]:
    """The part of the exactness matrix that runs on a commit of that day."""
    turn = turns.turn_at(NOON_S + day * turns.DAY_S)
    return {cell for cell in CELLS if cell not in LEFT or turns.turn_of(MATRIX, named(cell)) == turn}


@pytest.mark.parametrize("first", range(turns.TURNS))
def test_over_four_days_every_scenario_runs_at_every_share(first: int) -> None:
    days = [due(first + day) for day in range(turns.TURNS)]
    assert set.union(*days) == set(CELLS)
    ran: dict[str, set[Members]] = {name: set() for name in EVERY}
    for name, members in set.union(*days):
        ran.setdefault(name, set()).add(members)
    for name in EVERY:
        assert ran[name] >= {members for members in (UNEVEN, THREE, EXTREME) if name in NAMES[members]}


def test_every_scenario_runs_at_one_uneven_share_each_day() -> None:
    for day in range(turns.TURNS):
        assert {(name, UNEVEN) for name in (*EVERY, *ONCE)} <= due(day)


def test_no_day_has_more_than_a_third_of_what_takes_turns() -> None:
    count = Counter(turns.turn_of(MATRIX, named(cell)) for cell in LEFT)
    assert len(count) == turns.TURNS
    assert max(count.values()) < len(LEFT) / 3


def git(folder: Path, *words: str, **variables: str) -> None:
    who = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a",
    }
    subprocess.run(["git", *words], cwd=folder, check=True, env={**os.environ, **who, **variables})


def test_the_turn_is_that_of_the_commits_day(tmp_path: Path) -> None:
    assert turns.turn_of_commit(tmp_path) == 0, "no repository"
    git(tmp_path, "init", "--quiet")
    assert turns.turn_of_commit(tmp_path) == 0, "no commit"
    for day in range(turns.TURNS):
        at_s = NOON_S + day * turns.DAY_S
        git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "x", GIT_COMMITTER_DATE=f"@{at_s} +0000")
        assert turns.turn_of_commit(tmp_path) == turns.turn_at(at_s)


def test_the_turn_is_the_first_where_there_is_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert turns.turn_of_commit(Path(__file__).parent) == 0


def test_make_test_runs_each_scenario_that_has_several_shares_and_a_core_of_the_others() -> None:
    left = {cell for cell in CELLS if left_out(cell)}
    assert left >= set(LEFT)
    assert not left & {(name, UNEVEN) for name in EVERY}
    assert len({(name, UNEVEN) for name in ONCE} - left) >= 10
