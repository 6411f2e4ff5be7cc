"""How rounds of sealed and open steps become rows."""

from bench import sealed_speed


def test_a_sealed_step_is_compared_with_the_open_one_of_its_own_round() -> None:
    sealed, opened, over = sealed_speed.rows(
        "936 Mbit/s", {"sealed": [0.3, 0.2, 0.6], "tuned": [0.3, 0.2, 0.5]}, 1.05
    )
    assert (sealed.value, opened.value, sealed.unit) == (300.0, 300.0, "ms")
    assert (over.value, over.kept) == (1.0, True)
    slow = sealed_speed.rows("free link", {"sealed": [0.3], "tuned": [0.2]}, 1.15)[-1]
    assert slow.kept is False and "free link" in slow.what


def test_what_is_promised_is_what_was_asked_for() -> None:
    assert sorted(sealed_speed.LIMITS.values()) == [1.05, 1.15]
    assert sealed_speed.LIMITS[936] == 1.05
