"""How rounds with and without audits become rows."""

from bench import audits


def test_speeds_are_compared_round_by_round() -> None:
    kept = audits.rows("dense", {"with": [0.98, 1.96, 4.0], "without": [1.0, 2.0, 4.0]})
    assert [row.kept for row in kept] == [None, None, True]
    assert kept[2].value == 0.98
    start = audits.start_rows([(10.1, 10.0), (10.6, 10.0), (9.0, 10.0)])
    assert start[2].kept and start[2].value == 1.01
    slow = audits.rows("dense", {"with": [0.9], "without": [1.0]})
    assert slow[2].what == "dense: with ÷ without" and slow[2].kept is False
