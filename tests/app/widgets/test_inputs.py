import pytest
from pytestqt.qtbot import QtBot

from app.widgets.inputs import NAME_BYTES, NameEdit
from core.home import settings_file
from core.vocabulary.settings import Settings


@pytest.fixture
def edit(qtbot: QtBot) -> NameEdit:
    edit = NameEdit(NAME_BYTES)
    qtbot.addWidget(edit)
    return edit


@pytest.mark.parametrize("letter", ["a", "ä", "電", "🙂"])
def test_as_many_letters_as_the_node_takes_can_be_typed_and_no_more(
    qtbot: QtBot, edit: NameEdit, letter: str
) -> None:
    for _ in range(70):
        edit.insert(letter)
    typed = edit.text()
    assert typed == letter * (NAME_BYTES // len(letter.encode()))
    settings_file.check(Settings(name=typed))


def test_a_long_paste_keeps_its_beginning_and_what_stands_behind_it(edit: NameEdit) -> None:
    edit.setText("my laptop")
    edit.setCursorPosition(3)
    edit.insert("ü" * 100)
    assert edit.text() == "my " + "ü" * 27 + "laptop"
    assert edit.cursorPosition() == 30
