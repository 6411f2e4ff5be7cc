"""How the speeds of a training beside a transfer become a row."""

from bench import transfer_beside


def test_the_median_round_counts() -> None:
    (row,) = transfer_beside.rows([0.95, 0.5, 0.93], [2.0, 3.0, 4.0])
    assert row.value == 0.93 and row.kept and "3.0 MB/s of files" in row.note
