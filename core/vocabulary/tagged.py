"""The base of every message of the house: frozen, keyword-only, named by a ``type`` field in snake_case."""

from __future__ import annotations

import re

import msgspec


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


class Tagged(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag=_snake):
    """``DeviceFound(...)`` travels as ``{"type": "device_found", ...}``."""


def type_of(message: Tagged) -> str:
    """The ``type`` under which a message travels."""
    return _snake(type(message).__name__)
