"""How messages become bytes: JSON for people and pipes, MessagePack for links. Strict."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Tagged(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=_snake):
    """The base of every message: ``DeviceFound(...)`` travels as ``{"type": "device_found", ...}``."""


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
