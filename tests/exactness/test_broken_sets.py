"""A scenario that breaks its processes is named, and stops no other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.exactness.matrix import MOST_BROKEN, UNEVEN, Matrix, Ran, go_through
from tests.exactness.plain_results import PlainResults
from tests.exactness.processes import folders_in


class Sets:
    """Replaces processes: each scenario leaves its name, unless it breaks its set."""

    def __init__(self, *breaking: str) -> None:
        self.breaking = breaking
        self.started: list[list[str]] = []

    def run(
        self, shares: tuple[int, ...], names: Sequence[str], out: Path, limit_s: float, **options: Any
    ) -> list[Path]:
        self.started.append(list(names))
        folders = folders_in(out, shares)
        for name in names:
            for rank, folder in enumerate(folders):
                folder.mkdir(parents=True, exist_ok=True)
                assert name not in self.breaking or rank == 0, f"died: ranks [{rank}]"
                np.savez(folder / f"{name}.npz", name=np.array(name))
        return folders


def names_left(ran: Ran, *names: str) -> list[list[str]]:
    return [[str(arrays["name"]) for arrays in ran.arrays(name)] for name in names]


def test_all_run_in_one_set(tmp_path: Path) -> None:
    sets = Sets()
    ran = go_through(UNEVEN, ["a", "b", "c"], tmp_path, sets.run)
    assert sets.started == [["a", "b", "c"]]
    assert names_left(ran, "a", "b", "c") == [["a", "a"], ["b", "b"], ["c", "c"]]
    assert ran.last and not ran.failures


def test_a_cell_that_several_tests_ask_for_runs_once(tmp_path: Path) -> None:
    cells = [("b", UNEVEN), ("a", UNEVEN), ("b", UNEVEN)]
    assert Matrix(cells, tmp_path, PlainResults(None, "")).names == {UNEVEN: ["b", "a"]}


def test_one_that_breaks_its_set_is_named_and_a_new_set_runs_the_rest(tmp_path: Path) -> None:
    sets = Sets("b")
    ran = go_through(UNEVEN, ["a", "b", "c", "d"], tmp_path, sets.run)
    assert sets.started == [["a", "b", "c", "d"], ["c", "d"]]
    with pytest.raises(AssertionError, match=r"b broke the processes at 48/16: died: ranks \[1\]"):
        ran.arrays("b")
    assert names_left(ran, "a", "c", "d") == [["a", "a"], ["c", "c"], ["d", "d"]]


def test_the_last_one_that_breaks_is_named(tmp_path: Path) -> None:
    ran = go_through(UNEVEN, ["a", "b"], tmp_path, Sets("b").run)
    assert list(ran.failures) == ["b"]


def test_an_error_is_reported_as_the_process_wrote_it(tmp_path: Path) -> None:
    ran = go_through(UNEVEN, ["a"], tmp_path, Sets().run)
    (ran.folders["a"][1] / "a.error").write_text("ValueError: no")
    with pytest.raises(AssertionError, match="a at rank1: ValueError: no"):
        ran.arrays("a")


def test_when_too_many_break_the_rest_says_which_they_were(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(MOST_BROKEN + 2)]
    sets = Sets(*names)
    ran = go_through(UNEVEN, names, tmp_path, sets.run)
    assert len(sets.started) == MOST_BROKEN
    with pytest.raises(AssertionError, match="not run: s0, s1, s2 broke the processes"):
        ran.arrays(names[-1])
