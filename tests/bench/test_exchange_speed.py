"""Rounds of exchanges as rows."""

from bench import exchange_speed


def test_each_way_is_compared_with_the_exchange_in_its_own_rounds() -> None:
    took_s = {
        "ops": [0.002, 0.004, 0.003],
        "ring": [0.004, 0.008, 0.006],
        "tls": [0.002, 0.004, 0.003],
        "tcp": [0.001, 0.002, 0.003],
    }
    used_s = {"ops": 0.003, "ring": 0.006, "tls": 0.003, "tcp": 0.001}
    *times, over_ring, over_tcp = exchange_speed.rows("few", took_s, used_s, {"ring": 1.0})
    assert [row.value for row in times] == [3.0, 6.0, 3.0, 2.0]
    assert "a core's time 1.00 ms" in times[0].note
    assert (over_ring.value, over_ring.kept) == (0.5, True)
    assert (over_tcp.value, over_tcp.kept) == (2.0, None)
    assert "a core's time 3.00" in over_tcp.note
    slow = exchange_speed.rows("few", took_s | {"ring": [0.001, 0.001, 0.001]}, used_s, {"ring": 1.0})
    assert slow[-2].kept is False


def test_each_promise_has_a_case_in_which_both_ways_take_turns() -> None:
    """As a fraction of TensorFlow's own time; against plain TCP, the fraction of its speed."""
    promised = {
        (case.words, other): round(limit, 3)
        for case in exchange_speed.CASES
        for other, limit in case.limits.items()
    }
    assert promised == {
        ("38,000 floats", "ring"): 1.0,
        ("38,000 floats", "mwms"): 0.45,
        ("5 million floats", "mwms"): 0.75,
        ("5 million floats, 936 Mbit/s", "mwms"): 0.9,
        ("5 million floats, 936 Mbit/s", "tcp"): 1.111,
        ("5 million floats, 240 Mbit/s", "mwms"): 1.0,
        ("5 million floats, 240 Mbit/s", "tcp"): 1.053,
    }
    for case in exchange_speed.CASES:
        assert set(case.limits) <= set(case.kinds)
