"""How the engine's rounds become rows."""

from bench import engine_speed


def test_a_round_takes_about_as_long_as_it_should() -> None:
    assert engine_speed.epochs_in_a_round([0.4, 0.5, 0.2]) == 10
    assert engine_speed.epochs_in_a_round([100.0]) == 1
    assert engine_speed.epochs_in_a_round([0.001]) == engine_speed.MOST_EPOCHS


def test_each_hand_written_loop_is_compared_in_its_own_rounds() -> None:
    speeds = {"tandem": [30.0, 10.0, 20.0], "guide": [10.0, 5.0, 10.0], "tuned": [60.0, 20.0, 10.0]}
    rows = {row.what: row for row in engine_speed.rows("model", speeds)}
    guide = rows[f"model: Tandem ÷ {engine_speed.HAND_WRITTEN['guide']}"]
    tuned = rows[f"model: Tandem ÷ {engine_speed.HAND_WRITTEN['tuned']}"]
    assert (guide.value, guide.kept) == (2.0, True)
    assert (tuned.value, tuned.kept) == (0.5, False)
