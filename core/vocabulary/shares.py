"""Which rows of a global batch belong to which rank. Pure; no TensorFlow."""

from itertools import accumulate


def split(rows: int, shares: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Bounds (first, past the last) of each rank's rows in a batch of `rows`, proportional to `shares`.

    Cumulative rounding: bound k is rows * (s_0 + ... + s_k) / (s_0 + ... + s_n), rounded half up, so the
    parts are contiguous, in rank order, cover every row once, and equal the shares where rows == sum(shares).
    A rank may get no row. Raises ValueError for no shares, a negative share, a zero sum or negative rows.
    """
    check(shares)
    if rows < 0:
        raise ValueError(f"rows must not be negative: {rows}")
    total = sum(shares)
    ends = [(2 * rows * cumulated + total) // (2 * total) for cumulated in accumulate(shares)]
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


def check(shares: tuple[int, ...]) -> None:
    """Raises ValueError unless `shares` are whole numbers, none negative, not all zero."""
    if not shares or any(share < 0 for share in shares) or sum(shares) == 0:
        raise ValueError(f"shares must be whole numbers, none negative, not all zero: {shares}")
