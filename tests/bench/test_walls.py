"""How rounds within walls and without become rows."""

from bench import walls


def test_a_round_within_walls_is_compared_with_the_one_without_beside_it() -> None:
    within, without, over = walls.rows("a step", "ms", ([3.0, 2.0, 6.1], [3.0, 2.0, 6.0]), walls.STEP_LIMIT)
    assert (within.value, without.value, within.unit) == (3.0, 3.0, "ms")
    assert (over.value, over.kept) == (1.0, True)
    assert walls.rows("a start", "s", ([1.1], [1.0]), walls.START_LIMIT)[-1].kept is False


def test_what_walls_add_to_a_trainer_that_was_kept_ready_is_said_in_milliseconds() -> None:
    within, without, more = walls.added(([0.050, 0.040, 0.045], [0.020, 0.020, 0.010]))
    assert [round(each.value) for each in (within, without, more)] == [45, 20, 30]
    assert more.kept is True and more.unit == "ms"


def test_what_is_promised_is_what_was_asked_for() -> None:
    assert (walls.STEP_LIMIT, walls.START_LIMIT, walls.ADDED_MS) == (1.02, 1.05, 60.0)
