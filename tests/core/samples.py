"""One sample value of any type that travels: every field filled, so that a round trip tries them all."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect, structs


def sample(kind: Any) -> Any:
    """An instance of ``kind`` (a struct, a union's first member, a container…)."""
    return _of(inspect.type_info(kind))


def unsaid(struct: msgspec.Struct) -> set[str]:
    """Names of the fields that hold their default. A test that is to try every field holds this against the
    few that it leaves out, and so fails when a field is added."""
    return {field.name for field in structs.fields(struct) if getattr(struct, field.name) == _default(field)}


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
        case inspect.StrType():
            return "wörter\n"
        case inspect.IntType():
            return 7
        case inspect.FloatType():
            return 0.25
        case inspect.BoolType():
            return True
        case inspect.BytesType():
            return b"\x00\xff"
    raise NotImplementedError(info)
