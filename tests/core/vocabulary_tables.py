"""The tables of docs/jsonl.md, generated from the types: ``python -m tests.core.vocabulary_tables``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

from msgspec import inspect

from core.vocabulary import answers, state
from core.vocabulary.access import Access, Grant
from core.vocabulary.answers import Answer
from core.vocabulary.commands import Command
from core.vocabulary.data import Data
from core.vocabulary.errors import Problem
from core.vocabulary.events import Event
from core.vocabulary.laptops import LaptopUsed, Machine, MembershipChanged
from core.vocabulary.manifest import Listing, ProjectFile
from core.vocabulary.phases import Exit, Phase
from core.vocabulary.plan import Member, Moment, NodePin, Plan, Resumption, RunOwner, RunSpec, Task, TrialOf
from core.vocabulary.progress import (
    Advice,
    Audits,
    Best,
    Diverged,
    EpochEnd,
    EpochPart,
    Expectation,
    LogLines,
    Progress,
    Settled,
    Summary,
)
from core.vocabulary.readings import GpuReading, Hardware, Reading
from core.vocabulary.settings import Settings, SettingsChange
from core.vocabulary.sweep import Sweep, SweepSpec, Trial
from core.vocabulary.versions import Versions
from core.vocabulary.waits import WaitsFor

PAGE = Path(__file__).parent.parent.parent / "docs/jsonl.md"
MARK = "<!-- The tables below are made from the types: python -m tests.core.vocabulary_tables -->\n"

TAGGED: dict[str, Any] = {"Commands": Command, "Answers": Answer, "Events": Event, "Phases of a run": Phase}
OBJECTS: tuple[type, ...] = (
    Problem,
    state.State,
    state.Me,
    state.Device,
    state.Pairing,
    state.Run,
    state.MemberState,
    RunSpec,
    Access,
    Grant,
    Plan,
    Member,
    NodePin,
    Task,
    Resumption,
    RunOwner,
    Moment,
    TrialOf,
    SweepSpec,
    Sweep,
    Trial,
    Settings,
    SettingsChange,
    Versions,
    Hardware,
    Reading,
    GpuReading,
    ProjectFile,
    Data,
    Listing,
    Progress,
    EpochEnd,
    Best,
    Diverged,
    Advice,
    WaitsFor,
    Expectation,
    EpochPart,
    Settled,
    Audits,
    LogLines,
    Exit,
    Summary,
    answers.RequestFile,
    answers.Deed,
    answers.Declared,
    answers.RunEntry,
    answers.ReceivedReport,
    Machine,
    LaptopUsed,
    MembershipChanged,
    answers.Finding,
)
_TAGS = {
    kind.__name__: str(kind.__struct_config__.tag) for union in TAGGED.values() for kind in get_args(union)
}


def tables() -> str:
    parts = [_table(title, "type", get_args(union)) for title, union in TAGGED.items()]
    return "\n".join([*parts, _table("Objects inside them", "object", OBJECTS)])


def objects_within(kinds: Iterable[type]) -> set[type]:
    """Every struct that a field of ``kinds`` can hold."""
    found: set[type] = set()
    waiting = list(kinds)
    while waiting:
        for field in _fields(waiting.pop()):
            for kind in _structs(field.type):
                if kind not in found:
                    found.add(kind)
                    waiting.append(kind)
    return found


def _table(title: str, heading: str, kinds: Iterable[type]) -> str:
    rows = [f"## {title}\n\n| {heading} | fields | meaning |\n|---|---|---|"]
    rows += [
        f"| `{_TAGS.get(kind.__name__, kind.__name__)}` | {_shown(kind)} | {_meaning(kind)} |"
        for kind in kinds
    ]
    return "\n".join(rows) + "\n"


def _shown(kind: type) -> str:
    fields = _fields(kind)
    named = (f"`{field.encode_name}`{'' if field.required else '?'} {_type(field.type)}" for field in fields)
    return "; ".join(named) or "–"


def _fields(kind: type) -> tuple[inspect.Field, ...]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return info.fields


def _meaning(kind: type) -> str:
    first = (kind.__doc__ or "").strip().split("\n\n")[0]
    words = re.sub(r"``(.*?)``", r"`\1`", " ".join(first.split())).replace("|", "\\|")
    for name, tag in _TAGS.items():
        words = words.replace(f"`{name}`", f"`{tag}`")
    return re.sub(r"\bNone\b", "null", words)


def _type(info: inspect.Type) -> str:
    match info:
        case inspect.StructType():
            return _TAGS.get(info.cls.__name__, info.cls.__name__)
        case inspect.UnionType() if all(isinstance(part, inspect.StructType) for part in info.types):
            return "Phase"
        case inspect.UnionType():
            return " or ".join(_type(part) for part in info.types)
        case inspect.VarTupleType():
            return f"list of {_type(info.item_type)}"
        case inspect.DictType():
            return f"object of {_type(info.value_type)}"
        case inspect.LiteralType():
            return " / ".join(f'"{value}"' for value in info.values)
        case inspect.EnumType():
            return " / ".join(f'"{value.value}"' for value in info.cls)
    plain = {
        "NoneType": "null",
        "StrType": "text",
        "IntType": "integer",
        "FloatType": "number",
        "BoolType": "bool",
        "BytesType": "text (base64)",
    }
    return plain[type(info).__name__]


def _structs(info: inspect.Type) -> list[type]:
    match info:
        case inspect.StructType():
            return [info.cls]
        case inspect.UnionType():
            return [kind for part in info.types for kind in _structs(part)]
        case inspect.VarTupleType():
            return _structs(info.item_type)
        case inspect.DictType():
            return [*_structs(info.key_type), *_structs(info.value_type)]
    return []


if __name__ == "__main__":
    before, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(before + mark + "\n" + tables(), encoding="utf-8")
