"""One sample value of any type sent over a wire: every field filled, so that a round trip tests them all."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import inspect, structs

from core.vocabulary.options import SYNC

S = TypeVar("S", bound=msgspec.Struct)
_MATCHING = {SYNC: "rare=60"}
"""By pattern, a text that matches it."""


def sample(kind: Any) -> Any:
    """An instance of ``kind`` (a struct, a union's first member, a container…)."""
    return _of(inspect.type_info(kind))


def unsaid(struct: msgspec.Struct) -> set[str]:
    """Names of the fields that hold their default. A test meant to set every field compares this with the
    few that it omits, and so fails when a field is added."""
    return {field.name for field in structs.fields(struct) if getattr(struct, field.name) == _default(field)}


def unlike_default(kind: type[S]) -> S:
    """Every field differs from its default: for structs of flags, choices and numbers."""
    return kind(
        **{
            field.name: _another(inspect.type_info(field.type), _default(field))
            for field in structs.fields(kind)
        }
    )


def _another(info: inspect.Type, default: Any) -> Any:
    match info:
        case inspect.BoolType():
            return not default
        case inspect.LiteralType():
            return next(value for value in info.values if value != default)
        case inspect.IntType() | inspect.FloatType():
            return default + 60
        case inspect.StrType(pattern=str(pattern)):
            return _MATCHING[pattern]
    raise NotImplementedError(info)


def _default(field: structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _of(info: inspect.Type) -> Any:
    match info:
        case inspect.StructType():
            return info.cls(**{field.name: _of(field.type) for field in info.fields})
        case inspect.UnionType():
            return _of(next(kind for kind in info.types if not isinstance(kind, inspect.NoneType)))
        case inspect.VarTupleType() | inspect.ListType():
            return (_of(info.item_type),)
        case inspect.DictType():
            return {_of(info.key_type): _of(info.value_type)}
        case inspect.LiteralType():
            return info.values[0]
        case inspect.EnumType():
            return next(iter(info.cls))
        case inspect.StrType(pattern=pattern):
            return "wörter\n" if pattern is None else _MATCHING[pattern]
        case inspect.IntType():
            return 7
        case inspect.FloatType():
            return 0.25
        case inspect.BoolType():
            return True
        case inspect.BytesType():
            return b"\x00\xff"
    raise NotImplementedError(info)
