"""How rounds alone, exact and rare become rows."""

from bench import rare


def test_each_way_is_compared_with_training_alone_in_its_own_round() -> None:
    took_s: dict[rare.Kind, list[float]] = {
        "alone": [0.2, 0.4, 0.2],
        "exact": [0.4, 0.4, 0.8],
        "rare": [0.1, 0.2, 0.2],
    }
    alone, exact, rarely = rare.rows("5m-long-epochs", took_s)
    assert alone.value == 200.0
    assert (exact.value, rarely.value) == (0.5, 2.0)
    assert rare.WORDS.keys() == rare.EPOCHS.keys()
