"""How the seconds of returns become rows."""

from bench import returning


def test_the_median_return_after_a_cable_has_a_limit() -> None:
    cable, lid = returning.rows({"cable plugged in again": [2.0, 9.0, 4.0], "lid opened": [7.0, 6.0, 8.0]})
    assert (cable.value, cable.kept, lid.value, lid.limit) == (4.0, True, 7.0, None)
