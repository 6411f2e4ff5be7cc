import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextFormat
from PySide6.QtWidgets import QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.consent import ConsentSheet
from app.widgets.request_look import GONE, NOT_SHOWN
from core.project.look import difference
from core.script.deeds import deeds
from core.vocabulary import events as ev
from core.vocabulary.access import Grant
from core.vocabulary.answers import Refused, RequestFile, RequestRead
from core.vocabulary.commands import AnswerConsent, LookAtRequest
from core.vocabulary.data import Data
from core.vocabulary.ids import DeviceId, RunId
from core.vocabulary.manifest import Listing, ProjectFile
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM, RUN, consent_asked

SECOND = RunId("20261121-191300-00000002")


@pytest.fixture
def sheet(under: QWidget, bridge: Bridge, core: FakeCore) -> ConsentSheet:
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
    assert sheet.total.text() == "2 files, 5.2 MB"

    rows = [(item.text(0), item.text(1)) for item in _items(sheet)]
    assert rows == [("train.py", "2 kB"), ("data/rows.csv", "5.2 MB")]
    sheet.details.head.click()
    assert sheet.files.isVisible() and not sheet.look.isVisible()
    assert "d" * 64 in sheet.digest.toPlainText()
    assert not sheet.changed.isVisible()


def test_a_checkpoint_that_comes_too_is_said(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(replace(consent_asked(), checkpoint_bytes=5 << 20))
    assert sheet.total.text() == "2 files, 5.2 MB, and a checkpoint of 5.2 MB to resume from"


def test_what_hides_is_spelled_out_and_nothing_is_cut(sheet: ConsentSheet, core: FakeCore) -> None:
    file = ProjectFile(path="a" * 120 + "\u202eyp.nia", size=1, sha256="a" * 64)
    core.happen(replace(consent_asked(), script="tr\u200bain.py", arguments=("\u202eabc",), files=(file,)))
    assert sheet.script.text() == "tr⟨U+200B⟩ain.py"
    assert sheet.arguments.text() == "⟨U+202E⟩abc" and not sheet.long_arguments.isVisible()
    [shown] = [item.text(0) for item in _items(sheet)]
    assert shown.replace("\n", "") == "a" * 120 + "⟨U+202E⟩yp.nia" and "\n" in shown

    core.happen(ev.ConsentSettled(run=RUN, allowed=True))
    core.happen(replace(consent_asked(SECOND), arguments=("b" * 5_000, "--end")))
    assert sheet.long_arguments.isVisible() and not sheet.arguments.isVisible()
    assert sheet.long_arguments.toPlainText() == "b" * 5_000 + " --end"
    assert not sheet.caution.isVisible()


def test_all_arguments_of_a_sweep_are_shown(sheet: ConsentSheet, core: FakeCore) -> None:
    sets = tuple(("--lr", f"{rate} \u202e") for rate in range(20))
    core.happen(replace(consent_asked(), arguments=sets[0], argument_sets=sets))
    assert sheet.script.text() == "train.py, with 20 sets of arguments one after another"
    assert sheet.long_arguments.isVisible() and not sheet.arguments.isVisible()
    shown = sheet.long_arguments.toPlainText().splitlines()
    assert shown == [f"--lr “{rate} ⟨U+202E⟩”" for rate in range(20)]


def test_a_name_that_passes_for_another_is_marked(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(ev.DevicePaired(device=DeviceId("c" * 64), name="ben"))
    core.happen(consent_asked(name="b\u0435n"))
    assert sheet.caution.isVisible()
    assert sheet.caution.text() == "Careful: b\u0435n looks like the name of another laptop here, ben."


def test_a_changed_script_is_said(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(replace(consent_asked(changed=True), beyond=("arguments",)))
    assert sheet.changed.isVisible()
    shown = sheet.changed.problem
    assert shown is not None
    assert shown.fix.startswith("Its files are as you allowed them. It has other arguments. See below")
    core.happen(ev.ConsentSettled(run=RUN, allowed=True))
    core.happen(replace(consent_asked(SECOND, changed=True), differs={"digits.keras": "new"}))
    shown = sheet.changed.problem
    assert shown is not None and shown.fix.startswith("New: digits.keras. See below what")


def test_what_a_script_within_walls_reaches_is_said(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(replace(consent_asked(), walls="default", network="downloads", checkpoint_bytes=70 << 20))
    assert sheet.words.text().endswith("the internet through Tandem's proxy.")
    assert sheet.words.height() >= sheet.words.heightForWidth(sheet.words.width()), "all of it is in sight"
    assert sheet.words.heightForWidth(sheet.words.width()) >= 2 * sheet.fontMetrics().height()


def test_what_a_script_asks_to_open_beside_its_folders_stands_out(
    sheet: ConsentSheet, core: FakeCore
) -> None:
    core.happen(consent_asked())
    assert not sheet.opened.isVisible()
    core.happen(ev.ConsentSettled(run=RUN, allowed=False))
    long = "~/" + "a" * 900
    opened = (
        *(Grant(asked=f"{long}{number}", path=f"/mnt/{number}") for number in range(15)),
        Grant(asked="~/Pic\u202etures", path="/home/me/Pictures", write=True),
    )
    core.happen(replace(consent_asked(SECOND), walls="default", opened=opened))
    assert sheet.asks_more.isVisible() and sheet.opened.isVisible()
    lines = sheet.opened.toPlainText().splitlines()
    assert lines[0] == f"Read {long}0 (/mnt/0)" and len(lines) == 16
    assert lines[-1] == "Read and change ~/Pic⟨U+202E⟩tures (/home/me/Pictures)"


def test_data_that_comes_along_is_named_with_its_size(sheet: ConsentSheet, core: FakeCore) -> None:
    listing = Listing(digest="a" * 64, size=9)
    data = Data(name="photos", path="/p", listing=listing, files=8_000, total_bytes=2_000_000_000)
    core.happen(replace(consent_asked(), data=(data,), rate_bytes_s=50_000_000.0))
    assert "Data photos: 8,000 files, 2 GB, sent and kept here unless" in sheet.comes.text()
    count = len(consent_asked().files) + 8_000
    took = f"Sending all of it, {count:,} files, 2 GB, takes about 40 s."
    assert sheet.comes.isVisible() and sheet.comes.text().endswith(took)


def test_a_large_project_is_said_at_once(sheet: ConsentSheet, core: FakeCore) -> None:
    large = ProjectFile(path="photos/a.jpg", size=2_000_000_000, sha256="a" * 64)
    core.happen(replace(consent_asked(), files=(large,)))
    at_first = "Up to 1 file, 2 GB, will be sent here. The time that this takes is shown once it begins."
    assert sheet.comes.isVisible() and sheet.comes.text() == at_first


@pytest.mark.parametrize(("button", "decision"), [("once", "once"), ("always", "always"), ("no", "no")])
def test_each_answer_is_sent_once(
    qtbot: QtBot, sheet: ConsentSheet, core: FakeCore, button: str, decision: str
) -> None:
    core.happen(consent_asked())
    armed(qtbot, sheet)
    getattr(sheet, button).click()
    getattr(sheet, button).click()
    assert core.asked(AnswerConsent) == [AnswerConsent(run=RUN, decision=decision)]  # type: ignore[arg-type]


def test_enter_alone_allows_nothing_and_escape_refuses(
    qtbot: QtBot, sheet: ConsentSheet, core: FakeCore
) -> None:
    core.happen(consent_asked())
    armed(qtbot, sheet)
    for key in (Qt.Key.Key_Return, Qt.Key.Key_Space):
        qtbot.keyClick(sheet, key)
    assert core.asked(AnswerConsent) == []
    qtbot.keyClick(sheet, Qt.Key.Key_Escape)
    assert core.asked(AnswerConsent) == [AnswerConsent(run=RUN, decision="no")]


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
    assert core.asked(AnswerConsent) == [AnswerConsent(run=RUN, decision="once")]
    armed(qtbot, sheet)
    sheet.no.click()
    assert core.asked(AnswerConsent)[1:] == [AnswerConsent(run=SECOND, decision="no")]


def test_a_question_withdrawn_goes_away(sheet: ConsentSheet, core: FakeCore) -> None:
    core.happen(consent_asked())
    core.happen(ev.ConsentSettled(run=RUN, allowed=False))
    assert not sheet.is_open


def test_each_question_is_reported_once(sheet: ConsentSheet, core: FakeCore) -> None:
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


# --- looking at the files ----------------------------------------------------------------------------------

OLD, NEW = "epochs = 5\n", "epochs = 50\n"
READ = RequestRead(
    run=RUN,
    files=(
        RequestFile(
            path="train.py",
            size=12,
            change="changed",
            text=NEW,
            diff=difference("train.py", OLD, NEW),
        ),
        RequestFile(path="data/rows.csv", size=5 << 20, change="same"),
        RequestFile(path="model.py", size=9, change="new", text="layers = 3"),
        RequestFile(path="gone.py", size=9, change="gone"),
    ),
)


@pytest.fixture
def looking(sheet: ConsentSheet, core: FakeCore) -> ConsentSheet:
    core.answers[LookAtRequest] = READ
    core.happen(consent_asked(changed=True))
    core.flush()
    return sheet


def test_it_opens_on_the_script(looking: ConsentSheet, core: FakeCore) -> None:
    assert core.asked(LookAtRequest) == [LookAtRequest(run=RUN)]
    assert not core.asked(AnswerConsent)
    look = looking.look
    assert look.isVisible()
    assert not looking.files.isVisible(), "they are among the details"
    rows = [look.list.topLevelItem(at) for at in range(look.list.topLevelItemCount())]
    assert [(row.text(0), row.text(1)) for row in rows if row is not None] == [
        ("train.py", "changed"),
        ("data/rows.csv", "as before"),
        ("model.py", "new"),
        ("gone.py", "gone"),
    ]


def is_marked(sheet: ConsentSheet, line: int) -> bool:
    block = sheet.look.code.document().findBlockByNumber(line)
    layout = block.layout()
    parts = layout.formats()
    formats = [part.format for part in parts]
    return any(each.hasProperty(QTextFormat.Property.BackgroundBrush) for each in formats)


def test_what_the_script_does_is_said_in_a_line_each_and_its_lines_are_marked(
    sheet: ConsentSheet, core: FakeCore
) -> None:
    text = "import os, keras\nos.system('curl x')\nkeras.models.load_model('/etc/a')\n"
    large = RequestFile(path="large.py", size=9, text="")
    script = RequestFile(path="train.py", size=9, text=text, deeds=deeds("train.py", text))
    core.answers[LookAtRequest] = RequestRead(run=RUN, files=(script, large))
    core.happen(consent_asked())
    core.flush()
    assert [(label.text(), label.property("kind")) for label in sheet.deeds if label.isVisible()] == [
        ("Reads: /etc/a (line 3)", "warning"),
        ("Writes: nothing found in its code", ""),
        ("Downloads: nothing found in its code", ""),
        ("Starts: os.system curl x (line 2)", "warning"),
        ("Not checked, read it yourself: large.py", "warning"),
    ]
    assert [is_marked(sheet, line) for line in range(3)] == [False, True, True]
    core.happen(ev.ConsentSettled(run=RUN, allowed=False))
    core.held = True
    core.happen(consent_asked(SECOND))
    assert not any(label.isVisible() for label in sheet.deeds), "nothing of the one before"


def test_what_changed_comes_first_and_the_whole_file_is_a_click_away(looking: ConsentSheet) -> None:
    look = looking.look
    assert look.changes.isChecked()
    assert look.code.toPlainText().endswith("-epochs = 5\n+epochs = 50\n ")
    look.whole.click()
    assert look.code.toPlainText() == NEW
    look.changes.click()
    assert "-epochs = 5" in look.code.toPlainText()


def test_a_new_file_is_shown_whole_and_one_that_did_not_come_says_so(looking: ConsentSheet) -> None:
    look = looking.look
    for at, (text, note) in enumerate([("layers = 3", ""), ("", GONE)], start=2):
        item = look.list.topLevelItem(at)
        assert item is not None
        look.list.setCurrentItem(item)
        assert look.code.toPlainText() == text
        assert look.note.text() == note
        assert not look.changes.isVisible()
    item = look.list.topLevelItem(1)
    assert item is not None
    look.list.setCurrentItem(item)
    assert look.note.text() == NOT_SHOWN


def test_the_answer_can_be_given_from_there(qtbot: QtBot, looking: ConsentSheet, core: FakeCore) -> None:
    armed(qtbot, looking)
    assert looking.once.isVisible()
    looking.once.click()
    assert core.asked(AnswerConsent) == [AnswerConsent(run=RUN, decision="once")]


def test_the_details_take_the_place_of_the_files(looking: ConsentSheet) -> None:
    assert looking.changed.isVisible()
    looking.details.head.click()
    assert looking.files.isVisible() and not looking.look.isVisible()
    looking.details.head.click()
    assert looking.look.isVisible() and not looking.files.isVisible()


def test_the_next_question_is_not_shown_with_the_files_of_the_last(
    looking: ConsentSheet, core: FakeCore
) -> None:
    core.held = True
    core.happen(ev.ConsentSettled(run=RUN, allowed=False), consent_asked(run=SECOND, script="other.py"))
    assert looking.script.text() == "other.py"
    assert not looking.look.isVisible()


def test_an_answer_about_an_earlier_question_is_not_shown(sheet: ConsentSheet, core: FakeCore) -> None:
    core.answers[LookAtRequest] = READ
    core.held = True
    core.happen(consent_asked())
    core.answers[LookAtRequest] = Refused(problem=PROBLEM)
    core.happen(ev.ConsentSettled(run=RUN, allowed=False), consent_asked(run=SECOND))
    core.release()
    core.flush()
    assert not sheet.look.isVisible()
    assert sheet.problem.problem == PROBLEM


def test_files_that_cannot_be_read_say_why(sheet: ConsentSheet, core: FakeCore) -> None:
    core.answers[LookAtRequest] = Refused(problem=PROBLEM)
    core.happen(consent_asked())
    core.flush()
    assert sheet.problem.problem == PROBLEM
    assert not sheet.look.isVisible()
