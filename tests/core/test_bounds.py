"""Everything that another laptop, a trainer or a program can send is bounded, so that reading it is cheap."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect
from msgspec.structs import replace

from core.link import frames
from core.project.outputs import LIMIT_FILES
from core.project.texts import LIMIT_TEXTS_BYTES
from core.vocabulary import events as ev
from core.vocabulary import peer_messages as ms
from core.vocabulary.bounds import DETAIL
from core.vocabulary.errors import Problem
from core.vocabulary.manifest import ProjectFile, manifest_of
from core.vocabulary.peer_messages import Message
from core.vocabulary.progress import LogLines
from tests.core.cluster.laptops import ANNA, plan_of

ROOT = Path(__file__).parents[2]
OWN = {
    "app.models.openings: Accesses": "what this user wrote",
    "core.history.": "records that this node wrote",
    "core.home.": "files that this node wrote",
    "core.node.json_lines: Answer": "said by this user's node to this user's command",
    "core.node.json_lines: Event": "said by this user's node to this user's command",
    "core.node.json_lines: NodeGreeting": "said by this user's node to this user's command",
    "core.project.hash_cache": "a file that this node wrote",
    "core.report.": "records that this node wrote",
    "core.run.planning": "what this node itself encodes, to see how it would be read",
    "core.script.notebook": "a file of the project, which is opened up to a size alone",
    "core.supervisor.loading_times": "a file that this node wrote",
    "core.trainer.walls: dict[str, str]": "said by this trainer's own proxy, before the script begins",
    "core.vocabulary.environments": "a file of an installed package",
    "core.vocabulary.wire: kind": "its callers are looked at",
}
"""Decoded data that comes from nobody else, by the start of ``MODULE: TYPE``."""
SEVERAL = {
    "core.pairing.messages: kind": ("M1", "M2", "Note", "PairOk"),
    "core.trainer.exact.resume.trees: _kind": ("Outcome", "UnderWay"),
    "core.trainer.exact.resume.trees: kind": ("Outcome", "UnderWay"),
}
"""The types, if the decoder gets a variable."""
DECODERS = ("Decoder", "from_json", "from_msgpack", "decode", "convert")
"""Names of what decodes; the last two are msgspec's own."""
TOO_LONG = (1 << 20) + 1


def decoded() -> Iterator[str]:
    """``MODULE: TYPE`` of everything Tandem decodes: found in its source, so that no protocol is
    forgotten."""
    for path in sorted(each for room in ("app", "core") for each in (ROOT / room).rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        text = path.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(text)) if any(name in text for name in DECODERS) else ():
            if isinstance(call, ast.Call) and (kind := _type_of(call)) is not None:
                yield f"{module}: {ast.unparse(kind)}"


def _type_of(call: ast.Call) -> ast.expr | None:
    """The type that ``call`` decodes to; None if it decodes nothing."""
    whole = ast.unparse(call.func)
    name = whole.rpartition(".")[2]
    if name == DECODERS[0]:
        given = call.args[:1]
    elif name in DECODERS[1:3] or (whole.startswith("msgspec") and name in DECODERS[3:]):
        given = call.args[1:2]
    else:
        return None
    given += [word.value for word in call.keywords if word.arg == "type"]
    return given[0] if given else ast.Constant("nothing")


DECODED = sorted(set(decoded()))
READ = [each for each in DECODED if not each.startswith(tuple(OWN))]


def kinds_of(read: str) -> tuple[Any, ...]:
    module, _, expression = read.partition(": ")
    names = vars(import_module(module))
    return tuple(eval(each, names) for each in SEVERAL.get(read, (expression,)))


def unbounded(info: inspect.Type, where: str, within: tuple[type, ...] = ()) -> list[str]:
    """Paths of its texts, bytes, lists and dicts without a limit, or with one above a mebibyte."""
    found: list[str] = []
    match info:
        case inspect.Metadata(extra={"bounded_by": _}):
            return []
        case inspect.Metadata():
            return unbounded(info.type, where, within)
        case inspect.StructType() | inspect.NamedTupleType() if info.cls not in within:
            for field in info.fields:
                found += unbounded(
                    field.type, f"{where or info.cls.__name__}.{field.name}", (*within, info.cls)
                )
        case inspect.UnionType():
            for kind in info.types:
                found += unbounded(kind, where, within)
        case inspect.DictType():
            found += unbounded(info.key_type, f"{where}[key]", within)
            found += unbounded(info.value_type, f"{where}[]", within)
            if isinstance(info.key_type, inspect.LiteralType):
                return found
        case inspect.TupleType():
            for kind in info.item_types:
                found += unbounded(kind, f"{where}[]", within)
        case inspect.VarTupleType() | inspect.ListType() | inspect.SetType() | inspect.FrozenSetType():
            found += unbounded(info.item_type, f"{where}[]", within)
        case inspect.AnyType() | inspect.RawType() | inspect.ExtType() | inspect.CustomType():
            found.append(f"{where}: {type(info).__name__}")
    if hasattr(info, "max_length") and not 0 <= (info.max_length or -1) <= 1 << 20:
        found.append(f"{where}: {type(info).__name__}")
    return found


def test_exceptions_for_trusted_sources_still_exist() -> None:
    assert [each for each in OWN if not any(read.startswith(each) for read in DECODED)] == []
    assert set(SEVERAL) <= set(READ)
    assert {"core.link.frames: Message", "core.transfer.words: LaneWord"} <= set(READ)


@pytest.mark.parametrize("read", READ)
def test_everything_that_is_decoded_is_bounded(read: str) -> None:
    for kind in kinds_of(read):
        assert unbounded(inspect.type_info(kind), "") == []


@pytest.mark.parametrize("read", READ)
def test_a_mebibyte_in_any_text_of_any_message_is_not_read(read: str) -> None:
    for kind in kinds_of(read):
        for where, said in with_one_too_long(inspect.type_info(kind), "$"):
            data = msgspec.msgpack.encode(said)
            with pytest.raises(msgspec.ValidationError, match=r"length|matching|Invalid enum") as refused:
                msgspec.msgpack.decode(data, type=kind)
            said_where = str(refused.value).partition(" - at `")[2].strip("`") or "$"
            assert where == "a key" or re.sub(r"\[\d+\]", "[...]", said_where) == where, (
                where,
                refused.value,
            )


def with_one_too_long(
    info: inspect.Type, where: str, within: tuple[type, ...] = ()
) -> Iterator[tuple[str, Any]]:
    """A path, and a message that is too long there."""
    match info:
        case inspect.StrType() | inspect.LiteralType():
            yield where, "x" * TOO_LONG
        case inspect.BytesType():
            yield where, b"x" * TOO_LONG
        case inspect.Metadata() if not info.extra:
            yield from with_one_too_long(info.type, where, within)
        case inspect.UnionType():
            for kind in info.types:
                yield from with_one_too_long(kind, where, within)
        case inspect.StructType(array_like=True) if info.cls not in within:
            tag = [] if info.tag is None else [info.tag]
            yield from with_others(
                [each.type for each in info.fields], where, (*within, info.cls), before=tag
            )
        case inspect.NamedTupleType():
            yield from with_others([each.type for each in info.fields], where, within)
        case inspect.StructType() if info.cls not in within:
            tagged = {} if info.tag is None else {info.tag_field: info.tag}
            for field in info.fields:
                for at, said in with_one_too_long(
                    field.type, f"{where}.{field.encode_name}", (*within, info.cls)
                ):
                    yield at, {**tagged, field.encode_name: said}
        case inspect.DictType():
            for _, said in with_one_too_long(info.key_type, where, within):
                yield "a key", {said: sample(info.value_type)}
            for at, said in with_one_too_long(info.value_type, f"{where}[...]", within):
                yield at, {sample(info.key_type): said}
        case inspect.TupleType():
            yield from with_others(info.item_types, where, within)
        case inspect.VarTupleType() | inspect.ListType() | inspect.SetType() | inspect.FrozenSetType():
            for at, said in with_one_too_long(info.item_type, f"{where}[...]", within):
                yield at, [said]


def with_others(
    kinds: Sequence[inspect.Type], where: str, within: tuple[type, ...], before: Sequence[Any] = ()
) -> Iterator[tuple[str, Any]]:
    """Elsewhere everything is short: the count is checked first."""
    for place, kind in enumerate(kinds):
        for at, said in with_one_too_long(kind, f"{where}[...]", within):
            yield at, [*before, *map(sample, kinds[:place]), said, *map(sample, kinds[place + 1 :])]


def sample(info: inspect.Type) -> Any:
    """As short as possible."""
    match info:
        case inspect.IntType() | inspect.FloatType():
            return next(each for each in (info.ge, info.gt and info.gt + 1, 0) if each is not None)
        case inspect.BoolType():
            return False
        case inspect.LiteralType():
            return info.values[0]
        case inspect.StrType():
            pattern = re.compile(info.pattern or "")
            return next(each for each in ("", "a", "a" * 64, "1.2.3") if pattern.search(each))
        case inspect.BytesType():
            return b"x" * (info.min_length or 0)
        case inspect.UnionType():
            return None if info.includes_none else sample(info.types[0])
        case inspect.StructType():
            fields = [each for each in info.fields if each.required]
            if info.array_like:
                return [*([] if info.tag is None else [info.tag]), *(sample(each.type) for each in fields)]
            tagged = {} if info.tag is None else {info.tag_field: info.tag}
            return {**tagged, **{each.encode_name: sample(each.type) for each in fields}}
        case inspect.DictType():
            return {}
        case inspect.TupleType():
            return [sample(each) for each in info.item_types]
        case inspect.NamedTupleType():
            return [sample(each.type) for each in info.fields]
        case inspect.Metadata():
            return sample(info.type)
    return []


PLAN = plan_of()
FILES = manifest_of(
    "train.py",
    [
        ProjectFile(path=f"{'ä' * 20}/{'x' * 60}{number:05}.py", size=1, sha256="a" * 64)
        for number in range(LIMIT_FILES)
    ],
)
TASK_NAMES = [f"worker:{number}" for number in range(128)]
HONEST: list[Message] = [
    ms.Prepare(plan=PLAN, manifest=FILES),
    ms.Prepare(
        plan=replace(PLAN, arguments=tuple(f"--data=data/image-{number:05}.png" for number in range(10_000))),
        manifest=manifest_of("train.py", FILES.files[:10]),
        texts={"train.py": b"x" * LIMIT_TEXTS_BYTES},
    ),
    ms.FilesWanted(run=PLAN.run, total_bytes=10**15),
    ms.ModulesAsked(question=1, modules=("m" * 100,) * ms.MODULES_ASKED),
    ms.Prepared(
        run=PLAN.run,
        ports=dict.fromkeys(TASK_NAMES, 20000),
        certificates=dict.fromkeys(TASK_NAMES, b"x" * 2048),
    ),
]
PROSE: list[Message] = [
    ms.RunAbandoned(
        run=PLAN.run,
        problem=Problem(code="script-error", what="w" * 9_000, fix="f" * 9_000, detail="d" * 900_000),
    ),
    ms.EventTold(
        event=ev.MemberLogged(
            run=PLAN.run,
            device=ANNA,
            lines=LogLines(task="chief:0", stream="stdout", text="l" * 900_000),
        )
    ),
]


@pytest.mark.parametrize("message", [*HONEST, *PROSE], ids=lambda message: type(message).__name__)
def test_the_largest_honest_message_is_read(message: Message) -> None:
    assert frames.decode(frames.encode(message)[4:]) == message


def test_prose_that_is_too_long_is_cut_in_the_middle() -> None:
    problem = Problem(
        code="script-error", what="It failed.", detail="Traceback" + "x" * 900_000 + "ValueError"
    )
    assert problem.detail.startswith("Traceback") and problem.detail.endswith("ValueError")
    assert "…" in problem.detail and len(problem.detail) <= DETAIL
