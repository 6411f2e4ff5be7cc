"""A folder that cannot be shown is reported, with its path to copy. The programs here are stand-ins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.widgets.folder_box import FolderBox

LIMIT_MS = 60_000
pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are shell scripts")


@pytest.fixture
def box(under: QWidget, monkeypatch: pytest.MonkeyPatch) -> FolderBox:
    monkeypatch.setattr("app.widgets.folder_box.sys.platform", "linux")
    box = FolderBox()
    QVBoxLayout(under).addWidget(box)
    return box


def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> Path:
    """The only program: an ``xdg-open`` that exits with ``code``. Returns where it records its argument."""
    programs, note = tmp_path / "bin", tmp_path / "opened"
    programs.mkdir()
    program = programs / "xdg-open"
    program.write_text(f'#!/bin/sh\necho "$1" > {note}.new\n/bin/mv {note}.new {note}\nexit {code}\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", str(programs))
    return note


def test_without_a_file_manager_the_path_is_there_to_copy(
    qtbot: QtBot, box: FolderBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = opener(tmp_path, monkeypatch, code=3)
    box.open(tmp_path)
    qtbot.waitUntil(box.isVisible, timeout=LIMIT_MS)
    assert note.read_text().strip() == str(tmp_path)
    assert box.problem is not None
    assert box.problem.what == "No file manager could be opened here."
    assert str(tmp_path) in box.problem.fix
    box.copy.click()
    assert QGuiApplication.clipboard().text() == str(tmp_path)


def test_where_it_opens_nothing_is_said(
    qtbot: QtBot, box: FolderBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = opener(tmp_path, monkeypatch, code=0)
    box.open(tmp_path)
    qtbot.waitUntil(note.exists, timeout=LIMIT_MS)
    qtbot.wait(100)
    assert not box.isVisible()


def test_without_any_such_program_qt_is_asked_and_believed(
    box: FolderBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("app.widgets.folder_box.QDesktopServices.openUrl", lambda url: False)
    box.open(tmp_path)
    assert box.problem is not None
    assert box.isVisible()


def test_a_folder_that_is_gone_is_named(box: FolderBox, tmp_path: Path) -> None:
    box.open(tmp_path / "gone")
    assert box.problem is not None
    assert box.problem.what == "There is no such folder any more."
    assert str(tmp_path / "gone") in box.problem.fix
