"""A user's notation for files on other laptops, and how a form shows it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models import openings
from core.vocabulary import events as ev
from core.vocabulary.access import Access
from tests.app.cli.scripted_node import OTHER, THIRD, ScriptedNode, paired

ASKED = {OTHER: (Access(path="~/My pictures"), Access(path="/out", write=True))}


@pytest.mark.parametrize("name", ["other", "a=b", "ben" * 20])
@pytest.mark.parametrize("is_only_one", [True, False])
def test_what_is_written_is_read_as_the_same(name: str, is_only_one: bool) -> None:
    node = ScriptedNode()
    node.happen(paired())
    node.happen(ev.DeviceRenamed(device=OTHER, nickname=name))
    if not is_only_one:
        node.happen(paired(THIRD))
        node.happen(ev.DeviceRenamed(device=THIRD, nickname=name))
    text = openings.written(ASKED, node.state)
    assert openings.read_line(text, node.state, Path("/home/me")) == ASKED
