"""How messages become bytes: JSON for people and pipes, MessagePack for links. Strict both ways."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def to_json(message: Any) -> bytes:
    """One line of JSON, without the line end."""
    return msgspec.json.encode(message)


def from_json(data: bytes | str, kind: type[T]) -> T:
    """Raises ``msgspec.DecodeError`` (``ValidationError`` where the shape is wrong)."""
    return msgspec.json.decode(data, type=kind)


def to_msgpack(message: Any) -> bytes:
    return msgspec.msgpack.encode(message)


def from_msgpack(data: bytes, kind: type[T]) -> T:
    """Raises ``msgspec.DecodeError`` (``ValidationError`` where the shape is wrong)."""
    return msgspec.msgpack.decode(data, type=kind)
