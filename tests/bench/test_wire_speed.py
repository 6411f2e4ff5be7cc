"""How rounds on a slow cable become rows."""

from bench import wire_speed


def test_fewer_bits_are_compared_in_their_own_rounds() -> None:
    exact, narrowed, over = wire_speed.rows({"f32": [0.8, 1.6, 0.8], "bf16": [0.4, 0.8, 0.6]})
    assert (exact.value, narrowed.value) == (800.0, 600.0)
    assert (over.value, over.kept) == (0.5, True)
    assert wire_speed.rows({"f32": [0.8], "bf16": [0.5]})[-1].kept is False
