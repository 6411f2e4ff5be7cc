from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.views.settings import SettingsView
from core.vocabulary import events as ev
from core.vocabulary.answers import Cleared, Done, Finding, Findings, Refused, Saved, StorageMeasured
from core.vocabulary.commands import (
    ChangeSettings,
    Clear,
    Command,
    MeasureStorage,
    Mend,
    RunDoctor,
    SaveDiagnostics,
)
from core.vocabulary.errors import TandemError
from core.vocabulary.settings import SettingsChange, changed
from tests.app.fake_core import FakeCore
from tests.app.laptops import PROBLEM, linked, paired, read
from tests.app.seat import on_screen

FINDINGS = Findings(
    findings=(
        Finding(code="python", topic="software", level="ok", what="Python fits."),
        Finding(code="key-mode", topic="files", level="error", what="Open key.", fix="Close it.", mend=True),
    )
)


class Login:
    def __init__(self) -> None:
        self.asked: list[bool] = []
        self.error: TandemError | None = None

    def __call__(self, wanted: bool) -> None:
        self.asked.append(wanted)
        if self.error is not None:
            raise self.error


@pytest.fixture
def login() -> Login:
    return Login()


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore, login: Login) -> SettingsView:
    view = SettingsView(bridge, login)
    view.network._present = lambda: {"wlan0": "10.0.0.2", "eth0": ""}

    def change(command: Command) -> Done:
        assert isinstance(command, ChangeSettings)
        assert core.state.me is not None
        now = changed(core.state.me.settings, command.change)
        core.happen(ev.SettingsChanged(settings=now))
        return Done()

    core.answers[ChangeSettings] = change
    on_screen(qtbot, bridge, view)
    core.commands.clear()
    return view


def change(**fields: object) -> ChangeSettings:
    return ChangeSettings(change=SettingsChange(**fields))  # type: ignore[arg-type]


def test_the_name_is_saved_by_enter_and_only_when_it_is_new(
    qtbot: QtBot, view: SettingsView, core: FakeCore
) -> None:
    assert view.laptop.name.text() == "here"
    assert not view.laptop.save_name.isEnabled()
    qtbot.keyClick(view.laptop.name, Qt.Key.Key_Return)
    assert core.commands == []
    view.laptop.name.selectAll()
    qtbot.keyClicks(view.laptop.name, "desk")
    qtbot.keyClick(view.laptop.name, Qt.Key.Key_Return)
    assert core.commands == [change(name="desk")]
    assert not view.laptop.save_name.isEnabled()


def test_a_refused_name_is_said(qtbot: QtBot, view: SettingsView, core: FakeCore) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    qtbot.keyClicks(view.laptop.name, "x")
    view.laptop.save_name.click()
    core.flush()
    assert view.problem.problem == PROBLEM


def test_the_theme_is_chosen(view: SettingsView, core: FakeCore) -> None:
    view.laptop.theme.setCurrentIndex(2)
    view.laptop.theme.activated.emit(2)
    assert core.commands == [change(theme="dark")]
    assert core.state.me is not None
    assert core.state.me.settings.theme == "dark"
    assert view.laptop.theme.currentText() == "Dark"


@pytest.mark.parametrize(
    ("box", "field", "value"),
    [
        (lambda view: view.network.discovery, "discovery", False),
        (lambda view: view.background.tray, "tray", False),
        (lambda view: view.background.foresee, "foresee", False),
        (lambda view: view.background.warm, "warm_trainer", True),
        (lambda view: view.background.awake, "stay_awake", False),
        (lambda view: view.background.go_on, "go_on", True),
    ],
)
def test_a_box_changes_its_setting(
    view: SettingsView, core: FakeCore, box: Callable[[SettingsView], QPushButton], field: str, value: bool
) -> None:
    box(view).click()
    assert core.commands == [change(**{field: value})]
    assert box(view).isChecked() is value


def test_below_which_charge_a_run_is_left_is_one_number(view: SettingsView, core: FakeCore) -> None:
    field = view.background.battery
    assert field.text() == "never"
    field.setValue(15)
    assert core.commands == [change(leave_below_pct=15)] and field.text() == "15 %"
    field.setValue(0)
    assert core.commands[1:] == [change(leave_below_pct=0)]


def test_a_refused_box_shows_again_what_holds(view: SettingsView, core: FakeCore) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    view.background.warm.click()
    view.network.discovery.click()
    core.flush()
    assert not view.background.warm.isChecked()
    assert view.network.discovery.isChecked()
    assert view.problem.problem == PROBLEM


def test_interfaces_are_chosen_by_name(view: SettingsView, core: FakeCore) -> None:
    assert list(view.network.boxes) == ["wlan0", "eth0"]
    assert "10.0.0.2" in view.network.boxes["wlan0"].text()
    assert "no address" in view.network.boxes["eth0"].text()
    view.network.boxes["wlan0"].click()
    assert core.commands == [change(interfaces=("wlan0",))]


def test_a_chosen_interface_that_is_gone_can_still_be_unchosen(view: SettingsView, core: FakeCore) -> None:
    assert core.state.me is not None
    settings = replace(core.state.me.settings, interfaces=("usb0",))
    core.happen(ev.SettingsChanged(settings=settings))
    assert view.network.boxes["usb0"].isChecked()
    view.network.boxes["usb0"].click()
    assert core.commands == [change(interfaces=())]
    assert "usb0" not in view.network.boxes


def test_the_port_is_saved_by_its_button(view: SettingsView, core: FakeCore) -> None:
    assert view.network.port.value() == 27_600
    assert not view.network.save_port.isEnabled()
    view.network.port.setValue(0)
    assert view.network.port.text() == "any free one"
    view.network.save_port.click()
    assert core.commands == [change(port=0)]
    assert not view.network.save_port.isEnabled()


def test_a_port_being_typed_stays_while_readings_come_and_other_settings_change(
    view: SettingsView, core: FakeCore
) -> None:
    view.network.port.setValue(28_000)
    core.happen(paired(), linked(), read())
    view.network.discovery.click()
    assert core.commands == [change(discovery=False)]
    assert view.network.port.value() == 28_000


def test_start_at_login_is_done_and_then_kept(view: SettingsView, core: FakeCore, login: Login) -> None:
    view.background.login.click()
    assert login.asked == [True]
    assert core.commands == [change(start_at_login=True)]


def test_start_at_login_that_cannot_be_kept_is_undone(
    view: SettingsView, core: FakeCore, login: Login
) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    view.background.login.click()
    core.flush()
    assert login.asked == [True, False]
    assert not view.background.login.isChecked()
    assert view.problem.problem == PROBLEM


def test_start_at_login_that_is_not_to_be_had_is_said(
    view: SettingsView, core: FakeCore, login: Login
) -> None:
    login.error = TandemError(code="autostart-not-here", what="Not here.", fix="By hand.")
    view.background.login.click()
    assert core.commands == []
    assert not view.background.login.isChecked()
    assert view.problem.problem == login.error.problem


def test_the_doctors_findings_come_worst_first_with_their_mends(view: SettingsView, core: FakeCore) -> None:
    core.answers[RunDoctor] = FINDINGS
    view.help.look.click()
    assert not view.help.look.isEnabled()
    core.flush()
    assert view.help.look.isEnabled()
    assert [line.objectName() for line in view.help.findings._lines.values()] == [
        "finding-key-mode",
        "finding-python",
    ]
    mend = view.help.findings.findChild(QPushButton, "mend-key-mode")
    assert isinstance(mend, QPushButton)
    mend.click()
    core.flush()
    assert core.commands == [RunDoctor(), Mend(code="key-mode"), RunDoctor()]


def test_the_doctor_can_look_deeper(view: SettingsView, core: FakeCore) -> None:
    view.help.deep.click()
    view.help.look.click()
    assert core.commands == [RunDoctor(deep=True)]


def test_a_mend_that_fails_says_why(view: SettingsView, core: FakeCore) -> None:
    core.answers[RunDoctor] = FINDINGS
    core.answers[Mend] = Refused(problem=PROBLEM)
    view.help.look.click()
    core.flush()
    view.help.findings.mend_asked.emit("key-mode")
    core.flush()
    assert view.help.problem.problem == PROBLEM
    assert view.help.look.isEnabled()


def asked_where(qtbot: QtBot, view: SettingsView) -> QFileDialog:
    view.help.save.click()
    dialog = view.window().findChild(QFileDialog)
    assert isinstance(dialog, QFileDialog)
    qtbot.waitUntil(dialog.isVisible)
    return dialog


def test_the_diagnostics_are_saved_where_the_user_says(
    qtbot: QtBot, view: SettingsView, core: FakeCore
) -> None:
    core.answers[SaveDiagnostics] = Saved(path="/tmp/x.zip")
    asked_where(qtbot, view).fileSelected.emit("/tmp/x.zip")
    core.flush()
    assert core.commands == [SaveDiagnostics(path="/tmp/x.zip")]
    assert view.help.saved.text() == "Saved as /tmp/x.zip"
    core.answers[SaveDiagnostics] = Refused(problem=PROBLEM)
    asked_where(qtbot, view).fileSelected.emit("/tmp/x.zip")
    core.flush()
    assert view.help.problem.problem == PROBLEM


def test_saving_diagnostics_does_not_end_a_check(qtbot: QtBot, view: SettingsView, core: FakeCore) -> None:
    view.help.examine()
    core.answers[SaveDiagnostics] = Saved(path="/tmp/x.zip")
    view.help._on_saved(Saved(path="/tmp/x.zip"))
    assert view.help.saved.text() == "Saved as /tmp/x.zip"
    assert not view.help.look.isEnabled()
    assert not view.help.looking.isHidden()
    core.flush()
    assert view.help.look.isEnabled()


def test_thinking_better_of_it_saves_nothing(qtbot: QtBot, view: SettingsView, core: FakeCore) -> None:
    asked_where(qtbot, view).reject()
    assert core.commands == []


def test_versions_and_home_are_shown(view: SettingsView) -> None:
    assert "TensorFlow 2.21.0" in view.help.versions.text()
    assert view.help.home.text() == "Tandem's files: /home"


def test_a_home_that_cannot_be_opened_is_said(view: SettingsView, core: FakeCore, tmp_path: Path) -> None:
    assert core.state.me is not None
    view.help.show_me(replace(core.state.me, home=str(tmp_path / "gone")))
    view.help.open.click()
    assert view.help.not_opened.problem is not None
    assert str(tmp_path / "gone") in view.help.not_opened.problem.fix


def test_the_first_steps_can_be_seen_again(qtbot: QtBot, view: SettingsView) -> None:
    with qtbot.waitSignal(view.welcome_asked):
        view.help.welcome.click()


# --- what is stored ----------------------------------------------------------------------------------------

MEASURED = StorageMeasured(
    projects_bytes=1_500_000_000,
    data_bytes=2_000_000_000,
    runs_bytes=3_000_000,
    reports_bytes=4_000,
    own_bytes=600_000_000,
)
NOTHING = StorageMeasured(projects_bytes=0, data_bytes=0, runs_bytes=0, reports_bytes=0, own_bytes=0)


def press(view: SettingsView, name: str) -> None:
    (found,) = (each for each in view.storage.findChildren(QPushButton, name) if each.isVisible())
    found.click()


def listed(view: SettingsView) -> list[str]:
    return [label.text() for label in view.storage.sizes if label.isVisible()]


def test_days_and_size_are_shown_and_saved(view: SettingsView, core: FakeCore) -> None:
    card = view.storage
    assert (card.days.value(), card.gigabytes.value()) == (30, 10) and not card.save_limits.isEnabled()
    card.days.setValue(7)
    card.save_limits.click()
    core.flush()
    assert core.commands == [change(keep_days=7, keep_gb=10), MeasureStorage()]


def test_a_refused_choice_is_taken_back(view: SettingsView, core: FakeCore) -> None:
    core.answers[ChangeSettings] = Refused(problem=PROBLEM)
    view.storage.gigabytes.setValue(1)
    view.storage.save_limits.click()
    core.flush()
    assert view.storage.gigabytes.value() == 10 and view.problem.problem == PROBLEM


def test_the_size_of_each_kind_is_shown_when_the_screen_comes_to_the_front(
    view: SettingsView, core: FakeCore
) -> None:
    core.answers[MeasureStorage] = MEASURED
    view.hide()
    view.show()
    core.flush()
    assert core.commands == [MeasureStorage()]
    assert listed(view) == [
        "1.5 GB: Projects of other laptops, and files that came in part",
        "2 GB: Data of other laptops",
        "3 MB: Files of other laptops' runs: outputs, checkpoints, logs",
        "4 kB: Reports from other laptops",
        "600 MB: Outputs of your own runs, in folders outputs-left",
    ]


def test_everything_is_cleared_after_a_question(view: SettingsView, core: FakeCore) -> None:
    core.answers[Clear] = Cleared(freed_bytes=3_000_000)
    core.answers[MeasureStorage] = MEASURED
    press(view, "clear")
    core.flush()
    assert core.asked(Clear) == [], "it is asked first"
    said = view.storage.words.text()
    assert said.startswith("This removes everything listed above.") and "own runs" in listed(view)[-1]
    core.answers[MeasureStorage] = NOTHING
    press(view, "keep-files")
    assert view.storage.words.text() == ""
    press(view, "clear")
    press(view, "really-clear")
    core.flush()
    assert core.asked(Clear) == [Clear()] and view.storage.words.text() == "Freed 3 MB."
    assert listed(view) == ["Nothing is stored."]
    assert view.storage.clear.isVisible() and not view.storage.clear.isEnabled(), "there is nothing to clear"
    view.storage._on_measured(MEASURED)
    assert view.storage.clear.isEnabled()


def test_a_refusal_is_said(view: SettingsView, core: FakeCore) -> None:
    core.answers[Clear] = Refused(problem=PROBLEM)
    press(view, "clear")
    press(view, "really-clear")
    core.flush()
    assert view.storage.words.text() == str(PROBLEM)


def test_data_folders_are_saved_and_a_wrong_line_is_said(
    qtbot: QtBot, view: SettingsView, core: FakeCore
) -> None:
    card = view.data
    assert not card.save_folders.isEnabled()
    qtbot.keyClicks(card.folders, "photos")
    card.save_folders.click()
    assert "NAME=PATH" in card.wrong.text() and card.wrong.isVisible() and not core.commands
    qtbot.keyClicks(card.folders, "=/data")
    assert not card.wrong.isVisible()
    card.save_folders.click()
    assert core.commands == [change(data={"photos": "/data"})]
