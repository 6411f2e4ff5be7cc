"""How the seconds of losing and regaining a laptop become rows."""

from bench import leaving


def test_ratios_are_of_the_same_round() -> None:
    took = [
        leaving.Took(cold=10.0, kept=4.0, next_step=1.0, back=5.0),
        leaving.Took(cold=20.0, kept=8.0, next_step=1.2, back=16.0),
        leaving.Took(cold=10.0, kept=4.0, next_step=3.0, back=4.0),
    ]
    cold, kept, next_step, of_cold, back, of_kept = leaving.rows(took)

    assert (cold.value, kept.value, next_step.value, back.value) == (10.0, 4.0, 1.2, 5.0)
    assert (of_cold.value, of_kept.value) == (0.1, 1.25)
    assert next_step.kept and of_cold.kept and of_kept.kept
