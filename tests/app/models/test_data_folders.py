"""A user's notation for data folders, and how a form shows it again."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.models import data_folders
from core.vocabulary.errors import TandemError


def test_what_is_written_is_read_as_the_same() -> None:
    folders = {"photos": "/data/my photos", "table.csv": str(Path.home() / "table.csv")}
    assert data_folders.read_line(data_folders.written(folders)) == folders
    assert data_folders.read(["table.csv=~/table.csv"]) == {"table.csv": folders["table.csv"]}


@pytest.mark.parametrize(
    "text",
    [
        "photos",
        "photos=",
        "=/data",
        "my/photos=/data",
        "'photos=/data",
        " ".join(f"a{n}=/a" for n in range(9)),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(TandemError) as refused:
        data_folders.read_line(text)
    assert refused.value.code == "bad-option"
