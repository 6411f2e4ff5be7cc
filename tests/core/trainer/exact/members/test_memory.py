import psutil

from core.trainer.exact.members.memory import fitting_rows, peak_bytes


def test_the_memory_of_a_few_rows_shows_how_many_fit() -> None:
    assert fitting_rows(16, 100, 64, free_bytes=1000) == 64
    assert fitting_rows(16, 1000, 64, free_bytes=1250) == 32
    assert fitting_rows(16, 1000, 64, free_bytes=0) == 16


def test_rows_that_do_not_raise_the_peak_show_nothing() -> None:
    assert fitting_rows(16, 0, 64, free_bytes=1) == 64


def test_the_peak_grows_with_allocated_memory() -> None:
    before = peak_bytes()
    missing = before - psutil.Process().memory_info().rss
    taken = bytearray(max(0, missing) + (64 << 20))  # no more of a small machine than that
    taken[::4096] = b"x" * len(taken[::4096])
    assert peak_bytes() > before > 0
