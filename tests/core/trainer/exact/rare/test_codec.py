"""Differences in 4 bits: what is sent, what is refused, and that error feedback loses nothing for good."""

from __future__ import annotations

import numpy as np
import pytest

from core.trainer.exact.rare import codec


def numbers(count: int, seed: int = 1) -> codec.Floats:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 300_000])
def test_each_number_comes_within_half_a_step_of_its_block(count: int) -> None:
    values = numbers(count)
    found = codec.decode(codec.encode(values), count)
    assert found.dtype == np.float32 and found.shape == (count,)
    for begin in range(0, count, codec.BLOCK):
        block = values[begin : begin + codec.BLOCK]
        step = np.abs(block).max() / 7
        # bfloat16 rounds the scale itself by up to 1/256, and the largest of seven steps with it.
        assert np.abs(found[begin : begin + codec.BLOCK] - block).max() <= step * (0.5 + 7 / 256)


def test_eight_times_fewer_bytes_but_for_the_scales() -> None:
    assert codec.size_bytes(64_000) == len(codec.encode(numbers(64_000))) == 64_000 // 2 + 2 * 1_000


def test_what_rounding_loses_comes_with_later_differences() -> None:
    once = np.float32(0.01) * numbers(640)
    sent, unsent = np.zeros(640, np.float32), np.zeros(640, np.float32)
    for _ in range(50):
        wanted = once + unsent
        came = codec.decode(codec.encode(wanted), 640)
        sent, unsent = sent + came, wanted - came
    assert np.abs(sent - 50 * once).max() < 0.01  # one rounding, not fifty
    assert np.abs(unsent).max() > 0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38, -2e30])
def test_what_is_not_finite_or_too_large_is_found(value: float) -> None:
    values = numbers(200)
    values[150] = value
    with pytest.raises(codec.Unbounded):
        codec.decode(codec.encode(values), 200)


def test_nonsense_is_refused() -> None:
    data = codec.encode(numbers(128))
    for bad in (data[:-1], data + b"\x00", b"", b"\x80\xbf" + data[2:], data[:-1] + b"\x00"):
        with pytest.raises(ValueError):
            codec.decode(bad, 128)


def test_a_loss_that_is_coded_again_and_again_fades_without_a_warning() -> None:
    """As if the weights did not change any more."""
    unsent = numbers(64)
    for _ in range(50):
        unsent = unsent - codec.decode(codec.encode(unsent), 64)
    assert 0 < np.abs(unsent).max() < 1e-36


def test_blocks_of_zeros_stay_zeros() -> None:
    values = np.concatenate([np.zeros(64, np.float32), numbers(64)])
    assert not codec.decode(codec.encode(values), 128)[:64].any()
