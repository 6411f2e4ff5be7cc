"""The source viewer: complete, coloured, without blocking the window."""

import pytest
from PySide6.QtGui import QTextCharFormat
from pytestqt.qtbot import QtBot

from app import theme
from app.widgets.code_view import LINES_A_TURN, CodeView, Language


@pytest.fixture
def view(qtbot: QtBot) -> CodeView:
    view = CodeView("Code")
    qtbot.addWidget(view)
    view.resize(600, 400)
    view.show()
    return view


def coloured(view: CodeView, language: Language, text: str) -> list[tuple[str, str]]:
    """The coloured pieces, with their colours."""
    view.show_code(text, language)
    colours = theme.colours()
    names = {
        colours.faint: "comment",
        colours.good: "string",
        colours.accent: "keyword",
        colours.warning: "number",
        colours.bad: "removed",
    }
    found, block = [], view.document().begin()
    while block.isValid():
        for part in block.layout().formats():
            form = QTextCharFormat(part.format)
            words = block.text()[part.start : part.start + part.length]
            found.append((words, names[form.foreground().color().name()]))
        block = block.next()
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import os", [("import", "keyword")]),
        ("x = 'a#b'  # why", [("'a#b'", "string"), ("# why", "comment")]),
        ("important = 0x1f", [("0x1f", "number")]),
        (
            "'''a\nimport b\n''' if c else d",
            [
                ("'''a", "string"),
                ("import b", "string"),
                ("'''", "string"),
                ("if", "keyword"),
                ("else", "keyword"),
            ],
        ),
        ('"""one line""" + x', [('"""one line"""', "string")]),
        ("'it\\'s' and f'{x}'", [("'it\\'s'", "string"), ("and", "keyword"), ("f'{x}'", "string")]),
    ],
)
def test_python_is_coloured(view: CodeView, text: str, expected: list[tuple[str, str]]) -> None:
    assert coloured(view, "python", text) == expected


def test_a_difference_is_coloured_by_line(view: CodeView) -> None:
    found = coloured(view, "diff", " import os\n-old\n+new")
    assert found == [("-old", "removed"), ("+new", "string")]


def test_other_texts_have_no_colours(view: CodeView) -> None:
    assert coloured(view, "", "import os") == []


def test_a_long_text_comes_in_pieces_and_whole_and_stays_at_its_beginning(
    qtbot: QtBot, view: CodeView
) -> None:
    text = "\n".join(f"x{number} = {number}" for number in range(5 * LINES_A_TURN + 7))
    view.show_code(text, "python")
    assert not view.is_whole
    assert view.document().blockCount() == LINES_A_TURN
    qtbot.waitUntil(lambda: view.is_whole, timeout=60_000)
    assert view.toPlainText() == text
    assert view.verticalScrollBar().value() == 0


def test_another_text_takes_the_place_of_one_that_is_still_coming(qtbot: QtBot, view: CodeView) -> None:
    view.show_code("old\n" * 10 * LINES_A_TURN, "python")
    view.show_code("new", "python")
    qtbot.wait(20)
    assert view.toPlainText() == "new"


def test_nothing_lies_beyond_the_edge(view: CodeView) -> None:
    view.show_code("x = 1" + " " * 3_000 + "; import os", "python")
    assert view.horizontalScrollBar().maximum() == 0


@pytest.mark.parametrize("name", ["light", "dark"])
def test_it_follows_the_theme(qtbot: QtBot, view: CodeView, name: str) -> None:
    view.show_code("import os", "python")
    theme.use(name)  # type: ignore[arg-type]
    qtbot.wait(20)
    try:
        block = view.document().begin()
        (part,) = block.layout().formats()
        assert QTextCharFormat(part.format).foreground().color().name() == theme.colours().accent
    finally:
        theme.use("system")
