"""How steps per second become rows."""

from bench import undoing


def test_the_cost_of_leaving_and_coming_back_is_compared_round_by_round_and_includes_checkpoints() -> None:
    [cost] = undoing.rows("digits", {"with": [98.0, 45.0, 97.0], "without": [100.0, 50.0, 100.0]}, 0.96)
    assert (cost.value, cost.kept) == (0.97 * 0.99, True)
