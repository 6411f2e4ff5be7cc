"""Packs: how numbers are narrowed, and what is not sent."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.exchange.pack import Pack, call_for, narrowed, widened
from core.exchange.state import MAX_LABEL, MAX_PACK_BYTES, Wire
from core.vocabulary.errors import TandemError


@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_bfloat16_is_rounded_as_other_libraries_do(bits: list[int]) -> None:
    numbers = np.array(bits, np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        expected = numbers.astype(ml_dtypes.bfloat16)
    ours = widened(narrowed(numbers, "bf16"), "bf16")
    is_nan = np.isnan(numbers)
    assert np.isnan(ours[is_nan]).all()
    assert ours[~is_nan].tobytes() == expected[~is_nan].astype(np.float32).tobytes()


def test_float16_is_clamped_to_its_range() -> None:
    numbers = np.array([1e6, -1e6, np.inf, -np.inf, np.nan, 0.1], np.float32)
    ours = widened(narrowed(numbers, "fp16"), "fp16")
    assert ours.tolist()[:4] == [65504.0, -65504.0, np.inf, -np.inf]
    assert np.isnan(ours[4])
    assert ours[5] == np.float32(np.float16(0.1))


@pytest.mark.parametrize("wire", ["f32", "bf16", "fp16"])
def test_one_member_alone_keeps_its_numbers(wire: Wire) -> None:
    own = np.array([[0.1, 0.2]], np.float32)
    pack = Pack(0, range(1))
    pack.bring(own, call_for("sum", own, wire))
    pack.advance()
    total = pack.result()
    assert isinstance(total, np.ndarray)
    assert total.tolist() == own.tolist()
    assert not total.flags.writeable


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"]),
        np.array([None]),
        np.zeros(2, ">f4"),
        np.zeros(2, ml_dtypes.bfloat16),
        np.zeros(2, [("a", "i4")]),
        np.zeros((1,) * 17),
    ],
    ids=["text", "objects", "big-endian", "bfloat16", "records", "17 dimensions"],
)
def test_unsendable_arrays_are_refused_with_the_fix(array: npt.NDArray[Any]) -> None:
    with pytest.raises(TandemError) as failure:
        call_for("sum", array)
    assert failure.value.code == "exchange-unsendable"
    assert failure.value.fix


def test_a_single_number_is_not_gathered() -> None:
    with pytest.raises(TandemError):
        call_for("gather", np.array(1.0))


def test_a_long_label_is_refused() -> None:
    with pytest.raises(TandemError):
        call_for("sum", np.zeros(1), label="x" * (MAX_LABEL + 1))


def test_an_array_that_just_fits_is_accepted() -> None:
    largest = np.broadcast_to(np.uint8(0), MAX_PACK_BYTES)  # which takes a single byte of memory
    assert call_for("sum", largest).shape == (MAX_PACK_BYTES,)
    with pytest.raises(TandemError, match=f"more than {MAX_PACK_BYTES}"):
        call_for("sum", np.broadcast_to(np.uint8(0), MAX_PACK_BYTES + 1))
    assert call_for("sum", np.zeros((1,) * 16, np.float32), label="x" * MAX_LABEL).label == "x" * MAX_LABEL
    assert call_for("gather", np.zeros(1, np.float32)).kind == "gather"


def test_a_pack_adds_and_reports_as_far_as_all_numbers_have_arrived() -> None:
    own, theirs = np.arange(4, dtype=np.float32), np.full(4, 10, np.float32)
    call = call_for("sum", own)
    pack = Pack(0, range(2))
    assert pack.progress(1) == (0, 0), "nothing is known yet"
    landing = pack.land(1, "part", call)
    assert pack.progress(1) == (0, 16)
    landing.data[:8] = theirs.view(np.uint8)[:8]
    landing.received = 8
    assert pack.early_bytes() == 8
    pack.take(1, "part")
    pack.bring(own, call)
    pack.take(1, "part")
    assert landing.data.view(np.float32)[:2].tolist() == [10.0, 11.0]
    landing.data[8:] = theirs.view(np.uint8)[8:]
    landing.received = 16
    pack.take(1, "part")
    assert pack.progress(1) == (16, 16)
    total = pack.result()
    assert isinstance(total, np.ndarray)
    assert total.tolist() == [10.0, 11.0, 12.0, 13.0]
    assert not total.flags.writeable


def test_mismatched_arrays_are_never_added() -> None:
    own = np.zeros(4, np.float32)
    pack = Pack(0, range(2))
    landing = pack.land(1, "part", call_for("sum", np.zeros(2, np.float32)))
    landing.data[:], landing.received = 1, 8
    pack.bring(own, call_for("sum", own))
    pack.advance()
    assert landing.data.tolist() == [1] * 8


def test_totals_of_three_are_expected_from_the_others() -> None:
    own = np.zeros(300, np.float32)
    pack = Pack(0, range(3))
    pack.bring(own, call_for("sum", own))
    assert pack.progress(1) == (0, 800), "its part of ours, and the total of its own share"
    alone = Pack(0, range(2))
    alone.bring(own, call_for("sum", own))
    assert alone.progress(1) == (0, 1200)
    gathered = Pack(0, range(3))
    gathered.bring(own, call_for("gather", own))
    assert gathered.progress(1) == (0, 0), "a gather's sizes are known when they are announced"


def test_own_numbers_wait_for_the_others() -> None:
    own = np.ones(4, np.float32)
    call = call_for("sum", own)
    pack = Pack(0, range(2))
    pack.bring(own, call)
    pack.advance()
    landing = pack.land(1, "part", call)
    landing.data[:], landing.received = own.view(np.uint8), 16
    pack.take(1, "part")
    total = pack.result()
    assert isinstance(total, np.ndarray)
    assert total.tolist() == [2.0] * 4
