"""How rounds on a slow cable become rows."""

from bench import wire_speed
from core.vocabulary.options import Wire


def test_fewer_bits_are_compared_in_their_own_rounds() -> None:
    took_s: dict[Wire, list[float]] = {"f32": [0.8, 1.6, 0.8], "bf16": [0.4, 0.8, 0.6]}
    took_s["int8"] = [0.3, 0.6, 0.3]
    *each, narrowed, coded = wire_speed.rows(took_s)
    assert [row.value for row in each] == [800.0, 600.0, 300.0]
    assert (narrowed.value, narrowed.kept) == (0.5, True)
    assert (round(coded.value, 3), coded.kept) == (0.375, False)
