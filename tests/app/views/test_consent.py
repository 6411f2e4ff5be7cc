import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.consent import ConsentSheet
from core.vocabulary import events as ev
from core.vocabulary.answers import Refused
from core.vocabulary.commands import AnswerConsent
from core.vocabulary.ids import RunId
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM, RUN, consent_asked

SECOND = RunId("20261121-191300-00000002")


@pytest.fixture
def sheet(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> ConsentSheet:
    under = QWidget()
    qtbot.addWidget(under)
    under.resize(1000, 760)
    under.show()
    sheet = ConsentSheet(bridge, under)
    bridge.changed.connect(lambda events, state: sheet.show_state(state))
    return sheet


def armed(qtbot: QtBot, sheet: ConsentSheet) -> None:
    qtbot.waitUntil(sheet.once.isEnabled, timeout=30_000)


def test_it_says_who_wants_to_run_what(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(consent_asked())
    assert sheet.is_open
    assert sheet.heading.text() == "ben wants to train with this laptop"
    assert sheet.script.text() == "train.py"
    assert sheet.arguments.text() == "--epochs 5 “my data”"
    assert sheet.total.text() == "2 files, 5 MB"

    rows = [(item.text(0), item.text(1)) for item in _items(sheet)]
    assert rows == [("train.py", "2 KB"), ("data/rows.csv", "5 MB")]
    assert "d" * 64 in sheet.digest.text()
    assert not sheet.changed.isVisible()


def test_a_checkpoint_that_comes_too_is_said(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(replace(consent_asked(), checkpoint_bytes=5 << 20))
    assert sheet.total.text() == "2 files, 5 MB, and a checkpoint of 5 MB to resume from"


def test_a_changed_script_is_said(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(consent_asked(changed=True))
    assert sheet.changed.isVisible()


@pytest.mark.parametrize(("button", "decision"), [("once", "once"), ("always", "always"), ("no", "no")])
def test_each_answer_is_sent_once(
    qtbot: QtBot, sheet: ConsentSheet, core: FakeCore, button: str, decision: str
) -> None:
    core.happen(consent_asked())
    armed(qtbot, sheet)
    getattr(sheet, button).click()
    getattr(sheet, button).click()
    assert core.commands == [AnswerConsent(run=RUN, decision=decision)]  # type: ignore[arg-type]


def test_enter_alone_allows_nothing_and_escape_refuses(
    qtbot: QtBot, sheet: ConsentSheet, core: FakeCore
) -> None:
    core.happen(consent_asked())
    armed(qtbot, sheet)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space):
        qtbot.keyClick(sheet, key)
    assert core.commands == []
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert core.commands == [AnswerConsent(run=RUN, decision="no")]


def test_the_next_question_is_not_answered_by_the_same_click(
    qtbot: QtBot, sheet: ConsentSheet, core: FakeCore
) -> None:
    core.happen(consent_asked(), consent_asked(SECOND, name="cara"))
    assert sheet.more.text() == "1 more asks after this"
    armed(qtbot, sheet)
    sheet.once.click()
    core.happen(ev.ConsentSettled(run=RUN, allowed=True))
    assert "cara" in sheet.heading.text()
    sheet.once.click()
    assert core.commands == [AnswerConsent(run=RUN, decision="once")]
    armed(qtbot, sheet)
    sheet.no.click()
    assert core.commands[1:] == [AnswerConsent(run=SECOND, decision="no")]


def test_a_question_withdrawn_goes_away(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(consent_asked())
    core.happen(ev.ConsentSettled(run=RUN, allowed=False))
    assert not sheet.is_open


def test_each_question_is_told_once(sheet: ConsentSheet, core: FakeCore) -> None:
    told: list[str] = []
    sheet.incoming.connect(told.append)
    core.happen(consent_asked())
    core.happen(ev.NoticeRaised(problem=PROBLEM))
    assert told == ["ben"]


def test_a_refused_answer_is_said_and_can_be_given_again(
    qtbot: QtBot, sheet: ConsentSheet, core: FakeCore
) -> None:
    core.answers[AnswerConsent] = Refused(problem=PROBLEM)
    core.happen(consent_asked())
    armed(qtbot, sheet)
    sheet.once.click()
    core.flush()
    assert sheet.problem.problem == PROBLEM
    armed(qtbot, sheet)


def test_thousands_of_files_are_counted_and_not_all_shown(sheet: ConsentSheet, core: FakeCore) -> None:
    from msgspec.structs import replace

    event = consent_asked()
    core.happen(replace(event, files=event.files[:1] * 3_000))
    assert sheet.files.topLevelItemCount() == 501
    assert _items(sheet)[-1].text(0) == "and 2,500 more files"
    assert sheet.total.text().startswith("3,000 files")


def _items(sheet: ConsentSheet) -> list[QTreeWidgetItem]:
    items = [sheet.files.topLevelItem(row) for row in range(sheet.files.topLevelItemCount())]
    assert None not in items
    return [item for item in items if item is not None]
