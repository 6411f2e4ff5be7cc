from pytestqt.qtbot import QtBot

from app.widgets.notice_bar import NoticeBar
from core.vocabulary.errors import REPORT_CAME, Problem


def notice(code: str, what: str = "It is so.") -> Problem:
    return Problem(code=code, what=what)


def shown(bar: NoticeBar) -> list[str]:
    return [box.problem.code for box in bar._boxes if box.problem is not None]


def test_the_newest_come_first_and_the_rest_are_counted(qtbot: QtBot) -> None:
    bar = NoticeBar()
    qtbot.addWidget(bar)
    assert bar.isHidden()
    bar.show_notices(notice(code) for code in "abcd")
    assert shown(bar) == ["d", "c"]
    assert bar._more.text() == "2 more below these"
    assert bar._boxes[0].dismiss.accessibleName() == "Dismiss: It is so."


def test_a_dismissed_notice_stays_away_until_it_says_something_else(qtbot: QtBot) -> None:
    bar = NoticeBar()
    qtbot.addWidget(bar)
    bar.show_notices([notice("a")])
    bar.dismiss(bar._boxes[0].problem)
    bar.show_notices([notice("a")])
    assert bar.isHidden()
    bar.show_notices([notice("a", "It is otherwise.")])
    assert not bar.isHidden()


def test_a_report_that_came_is_no_warning(qtbot: QtBot) -> None:
    bar = NoticeBar()
    qtbot.addWidget(bar)
    bar.show_notices([notice("a"), notice(REPORT_CAME)])
    assert [box.property("level") for box in bar._boxes] == ["note", "warning"]
    bar.show_notices([notice("a")])
    assert bar._boxes[0].property("level") == "warning"
    assert bar._boxes[0].dismiss.text() == "Dismiss"
