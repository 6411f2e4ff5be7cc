"""How the seconds of returns become rows."""

from bench import returning


def test_the_median_return_after_a_cable_has_a_limit() -> None:
    cable, lid = returning.rows({"cable plugged in again": [2.0, 9.0, 4.0], "lid opened": [7.0, 6.0, 8.0]})
    assert (cable.value, cable.kept, lid.value, lid.limit) == (4.0, True, 7.0, None)


def test_a_restarted_laptop_is_compared_with_starts_of_the_same_round() -> None:
    took = [
        returning.Killed(cold=4.0, next_step=0.4, tandem=1.0, back=5.0),
        returning.Killed(cold=8.0, next_step=0.8, tandem=2.0, back=20.0),
        returning.Killed(cold=4.0, next_step=2.0, tandem=1.0, back=6.0),
    ]
    _, next_step, of_cold, _, back, of_starts = returning.killed_rows(took)
    assert (next_step.value, of_cold.value, back.value, of_starts.value) == (0.8, 0.1, 6.0, 1.2)
    assert next_step.kept and of_cold.kept and of_starts.kept
