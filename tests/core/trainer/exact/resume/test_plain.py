"""Plain data round-trips through bytes exactly; nothing else is accepted, and nothing is run."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from core.trainer.exact.resume import plain
from core.vocabulary.errors import TandemError


def back(value: Any) -> Any:
    return plain.unpack(plain.pack(value))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**200),
        0.1,
        math.inf,
        -0.0,
        5e-324,
        "a\n\u2028ä",
        [],
        (),
        {},
        [1, (2.5, [None]), {"a": (1,), 3: "b", (1, 2): False}],
        {"i": 1, "d": [["x"]]},
        random.Random(3).getstate(),
    ],
)
def test_a_value_comes_back_as_it_was(value: Any) -> None:
    again = back(value)
    assert again == value and type(again) is type(value)
    assert repr(again) == repr(value)


def test_nan_stays_nan() -> None:
    assert math.isnan(back(float("nan")))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8", "bool", "complex64"])
def test_arrays_come_back_bit_by_bit(dtype: str) -> None:
    for shape in ((), (0,), (3,), (2, 0, 4), (2, 3)):
        array = np.arange(math.prod(shape), dtype=np.float64).reshape(shape).astype(dtype)
        again = back({"x": [array, array.T]})["x"]
        for one, other in zip(again, (array, array.T), strict=True):
            assert one.dtype == other.dtype and one.shape == other.shape and np.array_equal(one, other)
            one[...] = 0  # a separate copy
    assert type(back(np.float32(1.5))) is np.float32


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", np.array([object()]), [len], np.dtype("i4")])
def test_what_is_not_plain_is_refused(value: Any) -> None:
    assert not plain.is_plain(value)
    with pytest.raises(plain.NotPlain):
        plain.dump(value)


def test_data_that_contains_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert not plain.is_plain(endless)


@pytest.mark.parametrize(
    ("json", "data"),
    [
        (b"", b""),
        (b"{}", b""),
        (b'{"tree":{"x":1},"arrays":[]}', b""),
        (b'{"tree":1,"arrays":[]}', b""),
        (b'{"tree":{"d":[[1.5,null]]},"arrays":[]}', b""),
        (b'{"tree":' + b"[" * 100_000 + b"]" * 100_000 + b',"arrays":[]}', b""),
        (b'{"tree":{"i":"x"},"arrays":[]}', b""),
        (b'{"tree":{"a":0},"arrays":[]}', b""),
        (b'{"tree":{"a":0},"arrays":[["float32",[2]]]}', b"1234567"),
        (b'{"tree":{"a":0},"arrays":[["float32",[1]]]}', b"12345"),
        (b'{"tree":{"a":0},"arrays":[["float32",[-1]]]}', b""),
        (b'{"tree":{"a":0},"arrays":[["float32",[99999999999,99999999999]]]}', b""),
        (b'{"tree":{"a":0},"arrays":[["object",[1]]]}', b"12345678"),
        (b'{"tree":{"a":0},"arrays":[["i4,O",[1]]]}', b"123456789012"),
        (b'{"tree":{"a":0},"arrays":[[{"names":["x"],"formats":["O"]},[1]]]}', b"12345678"),
        (b'{"tree":{"a":0},"arrays":[["int8",[' + b"1," * 99 + b"1]]]}", b"1"),
        (b'{"tree":{"a":-1},"arrays":[],"more":1}', b""),
        (b'{"tree":' + b"[" * 200 + b"]" * 200 + b',"arrays":[]}', b""),
    ],
)
def test_invariant_bytes_of_another_laptop_break_nothing(json: bytes, data: bytes) -> None:
    with pytest.raises(TandemError):
        plain.load(json, data)
