"""How the seconds of looking at many files become rows."""

from bench import project_scan


def test_the_median_of_the_later_looks_has_a_limit() -> None:
    first, later = project_scan.rows(2.0, [0.3, 1.5, 0.2])
    assert (first.value, first.limit) == (2.0, None)
    assert (later.value, later.kept) == (0.3, True)
