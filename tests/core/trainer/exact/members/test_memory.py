import psutil

from core.trainer.exact.members.memory import fitting_rows, peak_bytes


def test_what_a_few_rows_took_says_how_many_fit() -> None:
    assert fitting_rows(16, 100, 64, free_bytes=1000) == 64
    assert fitting_rows(16, 1000, 64, free_bytes=1250) == 32
    assert fitting_rows(16, 1000, 64, free_bytes=0) == 16


def test_rows_that_took_nothing_more_than_was_taken_before_say_nothing() -> None:
    assert fitting_rows(16, 0, 64, free_bytes=1) == 64


def test_the_peak_grows_with_what_is_taken() -> None:
    before = peak_bytes()
    missing = before - psutil.Process().memory_info().rss
    taken = bytearray(max(0, missing) + (64 << 20))  # no more of a small machine than that
    taken[::4096] = b"x" * len(taken[::4096])
    assert peak_bytes() > before > 0
