from msgspec.structs import replace
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QStackedWidget, QWidget
from pytestqt.qtbot import QtBot

from app.models.draft import RunDraft
from app.models.offers import Check, Offer
from app.widgets.findings import FindingsList
from core.vocabulary.answers import Finding

WALL = Finding(code="wall", topic="network", level="warning", what="A wall.", fix="Open it.", mend=True)
CLOCK = Finding(code="clock", topic="machine", level="ok", what="The clock is right.")
KEY = Finding(code="key", topic="files", level="error", what="Others can read the key.", mend=True)


def said(findings: FindingsList) -> list[str]:
    """From top to bottom."""
    layout = findings.layout()
    assert layout is not None
    lines = (layout.itemAt(place) for place in range(layout.count()))
    widgets = [line.widget() for line in lines if line is not None]
    assert None not in widgets
    return [widget.accessibleName() for widget in widgets if widget is not None]


def test_the_worst_stands_first_and_what_is_gone_goes(qtbot: QtBot) -> None:
    findings = FindingsList()
    qtbot.addWidget(findings)
    findings.show_findings([CLOCK, WALL, CLOCK])
    assert said(findings) == ["Warning: A wall.", "All right: The clock is right."]
    findings.show_findings([CLOCK, KEY])
    assert said(findings) == ["Error: Others can read the key.", "All right: The clock is right."]


def test_lines_out_of_sight_are_made_once_they_are_seen(qtbot: QtBot) -> None:
    """A run that ends in front of the form would else wait for them."""
    pages, findings, run = QStackedWidget(), FindingsList(), QWidget()
    qtbot.addWidget(pages)
    pages.addWidget(findings)
    pages.addWidget(run)
    pages.show()
    findings.show_findings([CLOCK])
    assert said(findings) == ["All right: The clock is right."]
    pages.setCurrentWidget(run)
    findings.show_findings([KEY, WALL])
    assert said(findings) == ["All right: The clock is right."]
    pages.setCurrentWidget(findings)
    assert said(findings) == ["Error: Others can read the key.", "Warning: A wall."]
    lines = [findings.findChild(QWidget, f"finding-{code}") for code in ("key", "wall")]
    assert all(line is not None and line.isVisible() for line in lines)


def test_a_finding_has_a_button_for_its_command_and_for_each_offer(qtbot: QtBot) -> None:
    findings = FindingsList()
    qtbot.addWidget(findings)
    taken: list[Offer] = []
    findings.taken.connect(taken.append)
    wall = Check(
        code="wall",
        topic="network",
        level="warning",
        what="A wall.",
        fix="Open it: sudo open",
        command="sudo open",
        offers=(Offer("Go round", RunDraft(arguments="1")),),
    )
    findings.show_findings([wall])
    around, copy = findings.findChildren(QPushButton)
    assert (around.text(), copy.text()) == ("Go round", "Copy the command")
    copy.click()
    assert QGuiApplication.clipboard().text() == "sudo open"
    now = Offer("Go round", RunDraft(arguments="2"))
    findings.show_findings([replace(wall, offers=(now,))])
    around.click()
    assert taken == [now], "the line stayed, and its offer is the newest"
    findings.show_findings([replace(wall, command_on="ben")])
    copy = findings.findChildren(QPushButton, "copy-wall")[-1]
    assert copy.text() == "Copy the command for ben"


def test_a_line_that_stays_keeps_the_keyboard(qtbot: QtBot) -> None:
    findings = FindingsList()
    qtbot.addWidget(findings)
    findings.show_findings([WALL, CLOCK])
    findings.show()
    qtbot.waitExposed(findings)
    findings.activateWindow()
    (mend,) = findings.findChildren(QPushButton)
    mend.setFocus()
    qtbot.waitUntil(mend.hasFocus, timeout=60_000)
    findings.show_findings([KEY, WALL])
    assert mend.hasFocus()
    assert said(findings) == ["Error: Others can read the key.", "Warning: A wall."]
