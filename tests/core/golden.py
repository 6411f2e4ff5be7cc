"""Formats that other laptops, programs and old histories rely on: ``python -m tests.core.golden`` rewrites
them.

A message's tag is its class's name, so a renamed class would change the wire format, the JSONL and the
history. A difference here needs a new protocol version, or ``tag="old_name"`` on the class.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

from msgspec import inspect

from app.cli.exit_codes import ExitCode
from core.vocabulary import wire
from core.vocabulary.wire import Tagged
from tests.core.samples import sample

PAGE = Path(__file__).parent.parent / "golden" / "messages.json"


def golden(unions: dict[str, Any]) -> str:
    """Every tagged type by its vocabulary: one sample with every field filled."""
    messages = {
        vocabulary: {str(kind.__struct_config__.tag): _shape(kind) for kind in get_args(union)}
        for vocabulary, union in unions.items()
    }
    exits = {code.name: code.value for code in ExitCode}
    return json.dumps({"messages": messages, "exit codes": exits}, indent=1, sort_keys=True) + "\n"


def _shape(kind: type[Tagged]) -> Any:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    optional = [field.encode_name for field in info.fields if not field.required]
    return {"sample": wire.from_json(wire.to_json(sample(kind)), dict[str, Any]), "optional": optional}


if __name__ == "__main__":
    from tests.core.test_vocabulary import VOCABULARIES

    PAGE.write_text(golden(VOCABULARIES), encoding="utf-8")
