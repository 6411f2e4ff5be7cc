"""How rounds with and without checkpoints become rows."""

from pathlib import Path

from bench import checkpoint_cost


def test_speeds_are_compared_round_by_round() -> None:
    rows = checkpoint_cost.rows({"with": [0.9, 1.96], "without": [1.0, 2.0]}, [2, 4])
    assert [row.kept for row in rows] == [None, None, True, False]
    assert rows[2].value == 3


def test_rounds_without_checkpoints_show_nothing(tmp_path: Path) -> None:
    rows = checkpoint_cost.rows({"with": [1.0], "without": [1.0]}, [0])
    assert rows[2].kept is False
    assert checkpoint_cost._written(tmp_path) == 0
