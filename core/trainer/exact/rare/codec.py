"""Differences of weights in 4 bits, in blocks with a scale each. Pure.

On the wire: the blocks' scales as bfloat16, little-endian, then two numbers a byte, the first in the low
half; each is an integer multiple of its block's scale, from -7 to 7, plus 8. The sender adds what rounding
loses to its next difference (error feedback), so nothing is lost for good.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BLOCK = 64
"""Numbers with a common scale."""
MOST = 1e30
"""Largest magnitude of a number that counts: sums of such numbers stay finite."""
_EDGE = 7
_LEAST = np.finfo(np.float32).tiny
"""The smallest usable scale: the inverse of a smaller one is infinite."""
_CHUNK = BLOCK * 4096
"""Numbers processed at once, so that intermediate results stay in a processor's cache."""

Floats = npt.NDArray[np.float32]


class Unbounded(Exception):
    """Some of the numbers are NaN, infinite or larger than ``MOST``."""


def size_bytes(count: int) -> int:
    """Encoded size of ``count`` numbers."""
    blocks = -(-count // BLOCK)
    return blocks * (2 + BLOCK // 2)


def encode(values: Floats) -> bytes:
    """Encodes float32 [n]. A block with NaN or infinity gets the scale NaN."""
    blocks = -(-len(values) // BLOCK)
    scales, packed = np.empty(blocks, "<u2"), np.empty((blocks, BLOCK // 2), np.uint8)
    for begin in range(0, len(values), _CHUNK):
        part = values[begin : begin + _CHUNK]
        if len(part) % BLOCK:
            part = np.concatenate([part, np.zeros(-len(part) % BLOCK, np.float32)])
        rows = part.reshape(-1, BLOCK)
        at = slice(begin // BLOCK, begin // BLOCK + len(rows))
        scales[at] = _narrowed(np.abs(rows).max(axis=1) / np.float32(_EDGE))
        scale = _widened(scales[at])
        usable = np.isfinite(scale) & (scale >= _LEAST)
        inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=usable)
        with np.errstate(invalid="ignore"):
            steps = np.clip(np.rint(rows * inverse[:, None]), -_EDGE, _EDGE)
        steps[~usable] = 0
        nibbles = steps.astype(np.int8).view(np.uint8) + np.uint8(8)
        packed[at] = nibbles[:, ::2] | (nibbles[:, 1::2] << 4)
    return scales.tobytes() + packed.tobytes()


def decode(data: bytes, count: int) -> Floats:
    """The numbers, float32 [count]; the same bits on every machine.

    Raises Unbounded, and ValueError for what ``encode`` never returns.
    """
    if len(data) != size_bytes(count):
        raise ValueError(f"{len(data)} bytes for {count} numbers")
    blocks = -(-count // BLOCK)
    scale = _widened(np.frombuffer(data, "<u2", blocks))
    if np.signbit(scale).any():
        raise ValueError("a scale out of range")
    if not (scale <= MOST / _EDGE).all():
        raise Unbounded
    packed = np.frombuffer(data, np.uint8, offset=2 * blocks).reshape(blocks, BLOCK // 2)
    found = np.empty((blocks, BLOCK), np.float32)
    rows_at_once = _CHUNK // BLOCK
    for begin in range(0, blocks, rows_at_once):
        at = slice(begin, begin + rows_at_once)
        nibbles = np.empty((len(packed[at]), BLOCK), np.uint8)
        nibbles[:, ::2], nibbles[:, 1::2] = packed[at] & 15, packed[at] >> 4
        if not nibbles.all():
            raise ValueError("a number out of range")
        np.multiply(nibbles.view(np.int8) - np.int8(8), scale[at, None], out=found[at], dtype=np.float32)
    return found.reshape(-1)[:count]


def _narrowed(values: Floats) -> npt.NDArray[np.uint16]:
    """float32 to the nearest bfloat16, as its bits; NaN and infinity to NaN."""
    bits = values.view(np.uint32)
    nearest = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isfinite(values), nearest, 0x7FC0).astype(np.uint16)


def _widened(bits: npt.NDArray[np.uint16]) -> Floats:
    return (bits.astype(np.uint32) << 16).view(np.float32)
