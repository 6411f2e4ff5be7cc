"""Composing a run: script, roles, options, checks, Train."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QCheckBox, QComboBox, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.bridge import Bridge
from app.models.draft import RunDraft
from app.views.train import TrainView
from app.views.train_setup import TrainSetup
from app.widgets.role_row import MIME
from app.widgets.script_drop import MOST
from core.cluster.tf_config import tf_config
from core.run.install_problems import done_there
from core.run.planning import read_script
from core.vocabulary import events as ev
from core.vocabulary.access import Access
from core.vocabulary.answers import (
    Answer,
    Declared,
    PlanMade,
    Refused,
    RunAccepted,
    ScriptsFound,
    SweepAccepted,
)
from core.vocabulary.commands import (
    AnalyseScript,
    AskToInstall,
    ChangeSettings,
    Command,
    Mend,
    PlanRun,
    RunDoctor,
    StartRun,
    StartSweep,
)
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.ids import DeviceId, SweepId
from core.vocabulary.options import AWAY_S, GO_ON_S, RunOptions
from core.vocabulary.plan import Role, RunSpec
from core.vocabulary.settings import Settings, SettingsChange
from tests.app import world
from tests.app.fake_core import FakeCore
from tests.app.seat import on_screen
from tests.core.fake_node import ME, OTHER

LIMIT_MS = 60_000


@pytest.fixture
def view(qtbot: QtBot, bridge: Bridge, core: FakeCore) -> Iterator[TrainView]:
    core.answers = {
        AnalyseScript: world.script_read(),
        PlanRun: world.planned,
        StartRun: RunAccepted(run=world.RUN),
    }
    view = on_screen(qtbot, bridge, TrainView(bridge), 1000, 800)
    yield view
    view.hide()


@pytest.fixture
def setup(view: TrainView) -> TrainSetup:
    return view.setup


Settle = Callable[[], None]


@pytest.fixture
def settle(qtbot: QtBot, core: FakeCore, setup: TrainSetup) -> Settle:
    """Waits until the newest plan is on the screen."""

    def until_planned() -> None:
        def done() -> bool:
            core.flush()
            return not (setup._stale or setup._planning or setup._settle.isActive())

        qtbot.waitUntil(done, timeout=LIMIT_MS)

    return until_planned


@pytest.fixture
def together(core: FakeCore, setup: TrainSetup, settle: Settle) -> TrainSetup:
    """A script is chosen, and the other laptop can take part."""
    core.happen(*world.linked())
    setup.choose("/home/ada/digits/digits.py")
    settle()
    return setup


def click(widget: QWidget, name: str) -> None:
    found = widget.findChild(QPushButton, name)
    assert found is not None, name
    assert found.isEnabled(), name
    found.click()


def words(setup: TrainSetup) -> str:
    return " | ".join(finding.what for finding in setup._shown)


def drop(widget: QWidget, data: QMimeData) -> None:
    widget.dropEvent(
        QDropEvent(
            QPointF(5, 5),
            Qt.DropAction.CopyAction,
            data,
            Qt.MouseButton.LeftButton,
            Qt.KeyboardModifier.NoModifier,
        )
    )


def files(*paths: str) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(path) if "://" not in path else QUrl(path) for path in paths])
    return data


# --- the script's options ----------------------------------------------------------------------------------

OPTIONS = (
    Declared(names=("--epochs", "-e"), kind="int", default="5", help="How long to train."),
    Declared(names=("--kind",), choices=("relu", "tanh"), default="relu"),
    Declared(names=("--fast",), takes=False, switch=True),
)


def test_the_scripts_options_are_a_form_that_writes_the_arguments(
    setup: TrainSetup, core: FakeCore, settle: Settle
) -> None:
    core.answers[AnalyseScript] = replace(world.script_read(), options=OPTIONS)
    core.happen(*world.linked())
    setup.choose("/home/ada/digits/digits.py")
    settle()
    epochs = shown_field(setup, QLineEdit, "argument-epochs")
    kind = shown_field(setup, QComboBox, "argument-kind")
    fast = shown_field(setup, QCheckBox, "argument-fast")
    assert epochs.placeholderText() == "5" and "How long to train." in epochs.toolTip()
    assert [kind.itemText(at) for at in range(kind.count())] == ["relu (default)", "relu", "tanh"]
    QTest.keyClicks(epochs, "7x")
    assert setup.arguments.text() == "--epochs 7x"
    assert "--epochs must be a whole number, not 7x." in [
        label.text() for label in shown_labels(setup.argued)
    ]
    QTest.keyClick(epochs, Qt.Key.Key_Backspace)
    assert shown_labels(setup.argued, "bad") == []
    kind.setCurrentIndex(2)
    kind.activated.emit(2)
    fast.click()
    assert setup.arguments.text() == "--epochs 7 --kind tanh --fast"
    settle()
    planned = core.asked(PlanRun)[-1]
    assert isinstance(planned, PlanRun)
    assert planned.spec.arguments == ("--epochs", "7", "--kind", "tanh", "--fast")


def test_what_is_typed_as_arguments_stands_in_the_form(
    setup: TrainSetup, core: FakeCore, settle: Settle
) -> None:
    core.answers[AnalyseScript] = replace(world.script_read(), options=OPTIONS)
    setup.choose("/home/ada/digits/digits.py")
    settle()
    QTest.keyClicks(setup.arguments, "-e 3 --kind tanh --fast")
    epochs = shown_field(setup, QLineEdit, "argument-epochs")
    kind = shown_field(setup, QComboBox, "argument-kind")
    fast = shown_field(setup, QCheckBox, "argument-fast")
    assert (epochs.text(), kind.currentText(), fast.isChecked()) == ("3", "tanh", True)
    setup.values.several.click()
    kind = shown_field(setup, QComboBox, "argument-kind")
    typed = kind.lineEdit()
    assert typed is not None
    QTest.keyClicks(typed, ",relu")
    assert setup.arguments.text() == "--epochs 3 --kind tanh,relu --fast".replace("--epochs", "-e")
    assert setup.train.text() == "Start 2 trials"


def test_taking_an_offer_leaves_the_keyboard_at_the_arguments(
    setup: TrainSetup, core: FakeCore, settle: Settle
) -> None:
    core.answers[AnalyseScript] = replace(world.script_read(), options=OPTIONS)
    setup.choose("/home/ada/digits/digits.py")
    settle()
    QTest.keyClicks(setup.arguments, "--epochs 3,5")
    settle()
    offer = next(
        each for each in setup.ready.findChildren(QPushButton, "offer-argument-refused") if each.isVisible()
    )
    offer.setFocus()
    offer.click()
    assert setup.train.text() == "Start 2 trials"
    assert setup.window().focusWidget() is setup.arguments


def test_a_package_missing_on_the_other_laptop_is_installed_there_and_the_run_can_begin(
    together: TrainSetup, core: FakeCore, bridge: Bridge, settle: Settle
) -> None:
    name = bridge.state.devices[OTHER].shown_name
    lack = Problem(
        code="modules-missing",
        what=f"pandas is missing on {name}.",
        fix="Install it with `pip install pandas`.",
        command="pip install pandas",
        command_on=name,
        installs=(OTHER,),
    )
    core.answers[PlanRun] = Refused(problem=lack)
    together.arguments.setText("-e 1")
    together.arguments.textEdited.emit("-e 1")
    settle()
    assert not together.train.isEnabled()
    [install] = [
        each
        for each in together.ready.findChildren(QPushButton, "offer-modules-missing")
        if each.isVisible() and each.text() == "Install it there"
    ]
    install.click()
    assert core.asked(AskToInstall) == [AskToInstall(device=OTHER)]
    core.answers[PlanRun] = world.planned
    core.happen(ev.NoticeRaised(problem=done_there(name, ("pandas",), None)))
    settle()
    assert together.train.isEnabled()


def test_a_script_without_options_has_no_form(together: TrainSetup) -> None:
    assert together.argued.fields.isHidden()


F = TypeVar("F", bound=QWidget)


def shown_field(setup: TrainSetup, kind: type[F], name: str) -> F:
    [field] = [each for each in setup.argued.findChildren(kind, name) if each.isVisible()]
    return field


def shown_labels(widget: QWidget, kind: str = "") -> list[QLabel]:
    return [
        each
        for each in widget.findChildren(QLabel)
        if each.isVisible() and (not kind or each.property("kind") == kind)
    ]


# --- several values ----------------------------------------------------------------------------------------


def test_several_values_are_trials_on_the_laptops_that_take_part(
    together: TrainSetup, core: FakeCore, settle: Settle
) -> None:
    core.answers[StartSweep] = SweepAccepted(sweep=SweepId("s"))
    together.values.several.click()
    together.arguments.setText("--epochs 3,4 --lr 0.1,0.01")
    together.arguments.textEdited.emit(together.arguments.text())
    settle()
    assert together.train.text() == "Start 4 trials"
    planned = core.asked(PlanRun)[-1]
    assert isinstance(planned, PlanRun)
    assert planned.spec.arguments == ("--epochs", "3", "--lr", "0.1")
    together.train.click()
    core.flush()
    assert core.asked(StartRun) == []
    [command] = core.asked(StartSweep)
    assert isinstance(command, StartSweep)
    sets = tuple(("--epochs", epochs, "--lr", rate) for epochs in ("3", "4") for rate in ("0.1", "0.01"))
    assert command.spec.argument_sets == sets
    spec = command.spec
    assert (spec.run.devices, spec.here, spec.models) == ((OTHER,), True, 5)


def test_some_combinations_are_drawn_at_random_and_repeated_with_several_seeds(
    together: TrainSetup, core: FakeCore, settle: Settle
) -> None:
    core.answers[StartSweep] = SweepAccepted(sweep=SweepId("s"))
    values = together.values
    assert not values.isVisible()
    values.several.click()
    assert values.count.text() == "Separate the values to try by commas: --lr 0.1,0.01."
    together.arguments.setText(f"--lr 0.1,0.01 --units {','.join(map(str, range(50)))}")
    together.arguments.textEdited.emit(together.arguments.text())
    assert values.count.text() == "100 combinations: 100 trials."
    assert not values.some.isEnabled()
    values.random.click()
    values.some.setValue(6)
    values.repeat.setValue(3)
    values.models.click()
    settle()
    assert values.count.text() == "6 of 100 combinations, each 3 times: 18 trials."
    assert together.train.text() == "Start 18 trials"
    planned = core.asked(PlanRun)[-1]
    assert isinstance(planned, PlanRun)
    together.train.click()
    core.flush()
    [command] = core.asked(StartSweep)
    assert isinstance(command, StartSweep)
    spec = command.spec
    assert (len(set(spec.argument_sets)), spec.repeat, spec.models) == (6, 3, None)
    assert planned.spec.arguments == command.spec.argument_sets[0], "what was planned is what begins"


def test_never_more_are_drawn_at_random_than_there_are(together: TrainSetup) -> None:
    values = together.values
    values.several.click()
    assert not values.random.isVisible() and not values.some.isVisible(), "there is only one"
    for arguments, drawn in (("--lr 1,2,3", 2), ("--lr 1,2,3,4,5,6", 3), ("--lr 1,2,3", 2)):
        together.arguments.setText(arguments)
        together.arguments.textEdited.emit(arguments)
        assert values.random.isVisible()
        assert values.some.value() == drawn
        assert values.count.text() in ("3 combinations: 3 trials.", "6 combinations: 6 trials.")
    values.random.click()
    values.some.setValue(16)
    assert values.count.text() == "3 combinations: 3 trials."
    assert values.some.value() == 3


def test_values_that_make_no_trials_are_reported_before_the_start(
    together: TrainSetup, core: FakeCore, settle: Settle
) -> None:
    together.values.several.click()
    together.arguments.setText("--lr 1,,2")
    together.arguments.textEdited.emit(together.arguments.text())
    settle()
    assert "has an empty value" in words(together)
    assert not together.train.isEnabled()
    together.values.several.click()
    settle()
    assert together.train.isEnabled(), "as one run, a comma is a comma"


# --- what is in sight --------------------------------------------------------------------------------------


def test_where_nothing_needs_the_user_all_is_folded_to_one_line(together: TrainSetup) -> None:
    assert together.ready.headline.text() == "Ready: 2 laptops ✓"
    assert together.ready.summary.text() == "here and Bob's laptop · 2 files, 182 kB"
    assert together.arguments.isVisible()
    for folded in (together.roles, together.options, together.ready.checks, together.ready.needs):
        assert not folded.isVisible()
    together.ready.more.head.click()
    for unfolded in (together.roles, together.options, together.ready.checks):
        assert unfolded.isVisible()


def test_alone_it_says_so(setup: TrainSetup, settle: Settle) -> None:
    setup.choose("/home/ada/digits/digits.py")
    settle()
    assert setup.ready.headline.text() == "Ready: this laptop alone ✓"


def test_what_needs_the_user_is_in_sight(core: FakeCore, setup: TrainSetup, settle: Settle) -> None:
    mistake = Problem(code="absolute-path", what="Line 12 reads /home/ada/x.csv.", fix="Read x.csv.")
    core.answers[AnalyseScript] = world.script_read(mistakes=(mistake,))
    core.happen(*world.linked())
    setup.choose("/home/ada/digits/digits.py")
    settle()
    assert setup.ready.headline.text() == "Ready: 2 laptops, 1 warning"
    line = setup.ready.needs.findChild(QWidget, "finding-absolute-path")
    assert line is not None and line.isVisible()
    assert setup.ready.checks.findChild(QWidget, "finding-absolute-path") is None
    assert setup.train.isEnabled()


def test_what_forbids_to_train_is_counted_and_in_sight(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    why = Problem(code="no-room", what="There is no room for the plan.", fix="Make some.")
    core.answers[PlanRun] = Refused(problem=why)
    setup.choose("/home/ada/digits/digits.py")
    settle()
    assert setup.ready.headline.text() == "Not ready: 1 problem"
    line = setup.ready.needs.findChild(QWidget, "finding-no-room")
    assert line is not None and line.isVisible()


def test_while_somebody_types_the_line_stays(core: FakeCore, setup: TrainSetup, settle: Settle) -> None:
    core.happen(*world.linked())
    setup.choose("/home/ada/digits/digits.py")
    assert setup.ready.headline.text() == "Getting ready…" or not setup.ready.headline.isVisible()
    settle()
    setup.arguments.setText("--epochs 2")
    setup.arguments.textEdited.emit("--epochs 2")
    assert setup._stale
    assert setup.ready.headline.text() == "Ready: 2 laptops ✓"


def test_each_example_has_a_picture_a_name_and_a_line(qtbot: QtBot, setup: TrainSetup) -> None:
    assert len(setup.drop.examples.cards) == 4
    for card in setup.drop.examples.cards:
        assert card.isVisible()
        assert not card._picture.pixmap().isNull()
        assert card.accessibleName().startswith("Example: ")
        assert card.accessibleDescription()
        assert card._words.height() >= card._words.heightForWidth(card._words.width())


def test_with_a_script_the_examples_make_room_and_come_back_when_asked(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    setup.choose("/home/ada/digits/digits.py")
    settle()
    assert not setup.drop.examples.isVisible()
    click(setup, "examples")
    assert setup.drop.examples.isVisible()
    setup.choose("/home/ada/other.py")
    settle()
    assert not setup.drop.examples.isVisible()


@pytest.mark.parametrize(("width", "columns"), [(1000, 4), (460, 2), (200, 1)])
def test_the_examples_stand_beside_each_other_as_far_as_there_is_room(
    setup: TrainSetup, width: int, columns: int
) -> None:
    setup.drop.examples.setParent(None)
    setup.drop.examples.resize(width, 900)
    setup.drop.examples.show()
    lefts = {card.x() for card in setup.drop.examples.cards}
    assert len(lefts) == columns
    assert max(card.geometry().right() for card in setup.drop.examples.cards) < width
    setup.drop.examples.hide()


# --- the script --------------------------------------------------------------------------------------------


def test_at_first_there_is_only_the_place_for_a_script(setup: TrainSetup) -> None:
    assert setup.drop.hint.isVisible()
    assert not setup.ready.isVisible()


def test_a_dropped_script_is_read_and_can_be_trained(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked())
    drop(setup.drop, files("/home/ada/digits/digits.py"))
    settle()
    assert core.asked(AnalyseScript) == [AnalyseScript(path="/home/ada/digits/digits.py")]
    assert setup.drop.name.text() == "digits.py"
    assert setup.train.isEnabled()
    assert setup.train.text() == "Train on 2 laptops"
    click(setup, "train")
    core.flush()
    started_runs = core.asked(StartRun)
    assert len(started_runs) == 1
    assert isinstance(started_runs[0], StartRun)
    assert started_runs[0].spec.script == "/home/ada/digits/digits.py"
    assert started_runs[0].spec.devices == (OTHER,)


@pytest.mark.parametrize("name", ["digits", "images", "table", "text"])
def test_an_example_is_one_click(
    core: FakeCore, setup: TrainSetup, qtbot: QtBot, tmp_path: Path, name: str
) -> None:
    setup.drop.home = str(tmp_path)
    click(setup, f"example-{name}")
    qtbot.waitUntil(lambda: bool(core.asked(AnalyseScript)), timeout=30_000)
    asked = core.asked(AnalyseScript)[0]
    assert isinstance(asked, AnalyseScript)
    assert Path(asked.path) == tmp_path / "examples" / name
    assert (Path(asked.path) / f"{name}.py").is_file()


@pytest.mark.parametrize(
    ("paths", "code"),
    [
        (("/a.py", "/b.py"), "several-dropped"),
        (("https://example.org/a.py",), "not-a-file"),
        ((), "not-a-file"),
    ],
)
def test_a_drop_that_is_no_script_says_what_to_drop(
    core: FakeCore, setup: TrainSetup, paths: tuple[str, ...], code: str
) -> None:
    drop(setup.drop, files(*paths))
    assert setup.problem.problem is not None
    assert setup.problem.problem.code == code
    assert setup.problem.isVisible()
    assert not core.asked(AnalyseScript)


def test_a_file_that_is_no_script_is_refused_in_the_nodes_words(core: FakeCore, setup: TrainSetup) -> None:
    why = Problem(code="script-ambiguous", what="It holds 2 scripts: a.py, b.py.", fix="Choose one of them.")
    core.answers[AnalyseScript] = Refused(problem=why)
    setup.choose("/home/ada/stuff")
    core.flush()
    assert setup.problem.problem == why
    assert not setup.ready.isVisible()
    assert not setup.reading.isVisible()
    core.answers[AnalyseScript] = world.script_read()
    setup.choose("/home/ada/stuff/a.py")
    core.flush()
    assert not setup.problem.isVisible()
    assert setup.ready.isVisible()


def test_how_far_the_reading_of_large_files_is_stands_on_the_form(core: FakeCore, setup: TrainSetup) -> None:
    def read(script: str, done: int, total: int = 2_000_000_000) -> ev.FilesRead:
        return ev.FilesRead(script=script, done=done, total=total)

    core.answers[AnalyseScript], core.held = world.script_read(), True
    setup.choose("/home/ada/photos")
    assert setup.reading.text() == "Reading the script…"
    core.happen(read("/home/ada/other", 100), read("/home/ada/photos", 500_000_000))
    assert setup.reading.text() == "Reading the files: 500 MB of 2 GB."
    core.release()
    core.happen(read("/home/ada/photos", 0, 0))
    assert not setup.reading.isVisible()
    core.held = True
    setup.start()
    core.happen(read(setup.draft.script, 1_900_000_000))
    assert setup.why.text() == "Reading the files: 1.9 GB of 2 GB."
    core.happen(read(setup.draft.script, 0, 0))
    assert setup.why.text() == "Starting…"


def test_how_far_the_files_of_a_run_to_join_are_stands_above_the_form(
    core: FakeCore, setup: TrainSetup
) -> None:
    assert core.state.me is not None
    here = core.state.me.device
    core.happen(ev.JoinProgressed(device=here, done=10**9, total=2 * 10**9, rate_bytes_s=2e6))
    told = (
        "This laptop will join a run under way, and is receiving the files: 50 % of 2 GB, 2 MB/s, 8 min left."
    )
    assert setup.banner.isVisible() and told in str(setup.banner.box.problem)
    assert not setup.banner.button.isVisible(), "there is no page of it yet"
    core.happen(ev.JoinProgressed(device=here, done=0, total=0))
    assert not setup.banner.isVisible()


def really_read(command: Command) -> Answer:
    """Answers like the node."""
    assert isinstance(command, AnalyseScript)
    try:
        return read_script(Path(command.path))
    except TandemError as error:
        return Refused(problem=error.problem)


TRAINS = "import keras\nmodel = keras.Sequential()\nmodel.fit([1.0], [1.0])\n"


def test_a_dropped_folder_with_two_scripts_lets_the_person_choose_one(
    core: FakeCore, setup: TrainSetup, settle: Settle, tmp_path: Path
) -> None:
    core.answers[AnalyseScript] = really_read
    for name in ("evaluate & more.py", "train.py"):
        (tmp_path / name).write_text(TRAINS)
    drop(setup.drop, files(str(tmp_path)))
    core.flush()
    assert setup.problem.problem is not None
    assert "2 training scripts: evaluate & more.py, train.py" in setup.problem.problem.what
    assert setup.choices.isVisible()
    assert setup.focusWidget() is setup.choices.buttons[0], "the keyboard is where the choice is"
    assert [made.accessibleName() for made in setup.choices.buttons] == ["evaluate & more.py", "train.py"]
    assert not setup.ready.isVisible()
    setup.choices.buttons[1].click()
    settle()
    assert not setup.choices.isVisible()
    assert not setup.problem.isVisible()
    assert setup.drop.name.text() == "train.py"
    assert setup.draft.script == str(tmp_path / "train.py")
    assert setup.train.isEnabled()


def test_some_of_very_many_scripts_can_be_clicked_and_the_rest_is_counted(
    core: FakeCore, setup: TrainSetup
) -> None:
    names = tuple(f"train_{number}.py" for number in range(40))
    why = Problem(code="script-ambiguous", what="It holds 40 scripts.", fix="Choose one.")
    core.answers[AnalyseScript] = ScriptsFound(folder="/a", scripts=names, problem=why)
    setup.choose("/a")
    core.flush()
    assert len(setup.choices.buttons) == MOST
    assert setup.choices.more.text().startswith(f"and {40 - MOST} more")


def test_things_that_are_no_script_are_refused_with_what_to_do(
    core: FakeCore, setup: TrainSetup, settle: Settle, tmp_path: Path
) -> None:
    core.answers[AnalyseScript] = really_read
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    (tmp_path / "broken.py").write_text("def fit(:\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "good.py").write_text(TRAINS)
    drop(setup.drop, files(str(tmp_path / "good.py")))
    settle()
    said = set()
    for name in ("photo.png", "empty", "gone.py"):
        drop(setup.drop, files(str(tmp_path / name)))
        core.flush()
        problem = setup.problem.problem
        assert problem is not None, name
        assert name in problem.what
        assert problem.fix
        assert setup.problem.isVisible()
        assert not setup.train.isVisible(), "nothing that was there before is trained by mistake"
        said.add(problem.what)
    assert len(said) == 3
    drop(setup.drop, files(str(tmp_path / "broken.py")))
    settle()
    assert "broken.py" in (setup.problem.problem.what if setup.problem.problem else words(setup))


def test_the_answer_for_a_script_chosen_before_is_not_taken(core: FakeCore, setup: TrainSetup) -> None:
    core.held = True
    setup.choose("/slow.py")
    core.answers[AnalyseScript] = world.script_read("fast.py", folder="/")
    setup.choose("/fast.py")
    core.release()
    core.flush()
    assert setup.read is not None
    assert setup.read.script == "fast.py"


# --- arguments and options ---------------------------------------------------------------------------------


def test_arguments_and_options_reach_the_run(
    qtbot: QtBot, core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    setup.choose("/a.py")
    settle()
    qtbot.keyClicks(setup.arguments, '--epochs 3 --name "two words"')
    setup.options.head.click()
    qtbot.keyClicks(setup.options._seed, "7")
    settle()
    click(setup, "train")
    core.flush()
    asked = core.asked(StartRun)[0]
    assert isinstance(asked, StartRun)
    assert asked.spec.arguments == ("--epochs", "3", "--name", "two words")
    assert asked.spec.seed == 7
    assert asked.spec.solo


def test_another_script_does_not_get_the_arguments_of_the_one_before(
    qtbot: QtBot, core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    setup.choose("/home/ada/digits/digits.py")
    settle()
    qtbot.keyClicks(setup.arguments, "--epochs 3")
    settle()
    setup.choose("/home/ada/digits/digits.py")
    assert setup.arguments.text() == "--epochs 3", "it is read again: what was typed stays"
    settle()
    setup.choose("/home/ada/digits/other.py")
    assert (setup.arguments.text(), setup.draft.arguments) == ("", "")


def test_a_problem_that_is_mended_in_the_script_goes_when_it_is_saved(
    qtbot: QtBot, core: FakeCore, setup: TrainSetup, settle: Settle, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import kears\n")
    there = replace(world.script_read(), folder=str(tmp_path), script="train.py")
    wrong = Problem(code="missing-module", what="The module kears is missing.")
    core.answers[AnalyseScript] = there
    core.answers[PlanRun] = Refused(problem=wrong)
    core.happen(*world.linked())
    setup.choose(str(tmp_path / "train.py"))
    settle()
    assert not setup.train.isEnabled()
    setup.arguments.setText("--epochs 3")
    core.answers[PlanRun] = world.planned

    (tmp_path / "train.py").write_text("import keras\n")

    def may_train() -> bool:
        core.flush()
        return setup.train.isEnabled()

    qtbot.waitUntil(may_train, timeout=LIMIT_MS)
    assert setup.arguments.text() == "--epochs 3"


# --- roles -------------------------------------------------------------------------------------------------


def test_roles_are_proposed_and_swapped_by_one_click(together: TrainSetup, settle: Settle) -> None:
    assert [line.role.currentText() for line in together.roles.rows.values()] == ["chief", "worker"]
    click(together, "swap-roles")
    settle()
    assert [line.role.currentText() for line in together.roles.rows.values()] == ["worker", "chief"]
    assert together.made is not None
    assert together.made.plan.chief.device == OTHER
    click(together, "reset-roles")
    settle()
    assert together.made.plan.chief.device == ME


def test_dragging_one_laptop_onto_another_swaps_them(together: TrainSetup, settle: Settle) -> None:
    data = QMimeData()
    data.setData(MIME, OTHER.encode())
    drop(together.roles.rows[ME], data)
    settle()
    assert together.made is not None
    assert together.made.plan.chief.device == OTHER


def test_a_laptop_can_be_left_out(together: TrainSetup, settle: Settle) -> None:
    together.roles.rows[OTHER].roles_chosen.emit((Role.NONE,))
    settle()
    assert together.made is not None
    assert together.made.plan.solo
    assert together.train.text() == "Train"
    assert together.roles.rows[OTHER].role.currentText() == "not in this run"


def test_shares_are_set_by_hand(qtbot: QtBot, together: TrainSetup, settle: Settle) -> None:
    together.ready.more.head.click()
    together.roles.by_hand.click()
    settle()
    share = together.roles.rows[ME].share
    assert share.isVisible()
    share.selectAll()
    qtbot.keyClicks(share, "150")
    qtbot.keyClick(share, Qt.Key.Key_Return)
    settle()
    assert together.draft.shares == {ME: 150, OTHER: 50}
    assert together.roles.rows[ME].part.text() == "75 % of each batch"


def test_shares_follow_the_speed_and_begin_by_hand_where_they_ended_last_time(
    core: FakeCore, together: TrainSetup, settle: Settle
) -> None:
    assert together.roles.rows[ME].part.text() == "share by speed"

    def as_last_time(command: Command) -> PlanMade | Refused:
        made = world.planned(command)
        assert isinstance(made, PlanMade)
        last = {ME: 48, OTHER: 16} if made.plan.balance else {}
        return replace(made, last_shares=last, expectation="Last time: fast.", advice=None)

    core.answers[PlanRun] = as_last_time
    together.choose("/a.py")
    settle()
    assert together.roles.rows[ME].part.text() == "share by speed: last time 75 %"
    assert [finding.what for finding in together._shown if finding.code == "speed"] == ["Last time: fast."]
    together.roles.by_hand.click()
    settle()
    assert together.draft.shares == {ME: 75, OTHER: 25}
    assert together.roles.rows[ME].part.text() == "75 % of each batch"


def test_a_run_alone_shows_no_shares(core: FakeCore, together: TrainSetup, settle: Settle) -> None:
    """Neither 100 % nor a field for it: there is nobody to share with while the other laptop is busy."""
    together.ready.more.head.click()
    together.roles.by_hand.click()
    settle()
    mine = together.roles.rows[ME]
    assert (mine.part.text(), mine.share.isVisible()) == ("50 % of each batch", True)
    assert "share of a batch" in together.roles._lead.text()
    core.happen(ev.BusyChanged(device=OTHER, busy=True))
    settle()
    assert together.made is not None and together.made.plan.solo
    assert [(line.part.text(), line.share.isVisible()) for line in together.roles.rows.values()] == [
        ("", False),
        ("", False),
    ]
    assert "share" not in together.roles._lead.text()
    core.happen(ev.BusyChanged(device=OTHER, busy=False))
    settle()
    assert (mine.part.text(), mine.share.isVisible()) == ("50 % of each batch", True)


def test_tf_config_is_shown_and_copied_exactly(together: TrainSetup) -> None:
    fold = together.roles.tf_config
    fold.head.click()
    fold.task.setCurrentIndex(1)
    click(together, "copy-tf-config")
    assert together.made is not None
    task = together.made.plan.tasks[1]
    assert fold.text.toPlainText() == tf_config(together.made.plan, task)
    assert QGuiApplication.clipboard().text() == tf_config(together.made.plan, task)


def test_a_script_with_its_own_strategy_may_have_every_role(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked())
    core.answers[AnalyseScript] = world.script_read(kind="own", strategies=("ParameterServerStrategy",))
    setup.choose("/a.py")
    settle()
    box = setup.roles.rows[OTHER].role
    assert "parameter server" in [box.itemText(index) for index in range(box.count())]


# --- what changes around it --------------------------------------------------------------------------------


def test_readings_do_not_make_it_plan_anew(core: FakeCore, together: TrainSetup) -> None:
    before = len(core.asked(PlanRun))
    core.happen(world.told(OTHER, world.reading()), world.told(ME, world.reading()))
    assert not together._settle.isActive()
    assert len(core.asked(PlanRun)) == before


def test_a_refused_start_says_why_and_may_be_tried_again(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    why = Problem(code="device-busy", what="It is busy with another run.", fix="Wait.")
    core.answers[StartRun] = Refused(problem=why)
    setup.choose("/a.py")
    settle()
    click(setup, "train")
    core.flush()
    assert setup.problem.problem == why
    assert setup.train.isEnabled()


def test_a_mend_that_fails_says_why(core: FakeCore, view: TrainView) -> None:
    why = Problem(code="not-mended", what="The disk is still full.", fix="Empty the bin.")
    core.answers[Mend] = Refused(problem=why)
    view.setup.ready.checks.mend_asked.emit("disk-full")
    core.flush()
    assert view.setup.problem.problem == why
    assert core.asked(RunDoctor), "it looks again all the same"


def test_an_acceptance_is_withdrawn_before_the_start(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked(), ev.SettingsChanged(settings=Settings(accepted=("d" * 64, "c" * 64))))
    setup.choose("/a.py")
    settle()
    click(setup, "mend-differences-accepted")
    core.flush()
    assert core.asked(ChangeSettings) == [ChangeSettings(change=SettingsChange(accepted=("d" * 64,)))]
    planned_before = len(core.asked(PlanRun))
    core.happen(ev.SettingsChanged(settings=Settings(accepted=("d" * 64,))))
    settle()
    assert len(core.asked(PlanRun)) > planned_before, "the plan says whether differences are accepted"
    assert not setup.findChildren(QPushButton, "mend-differences-accepted")


def test_data_that_the_script_names_is_sent_along_by_a_button(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked())
    found = (("train.py, line 1: /a/photos lies", "photos=/a/photos"), ("/b/photos lies", "photos=/b/photos"))
    mistakes = [Problem(code="file-only-here", what=what, fix="Do.", detail=data) for what, data in found]
    core.answers[AnalyseScript] = world.script_read(mistakes=tuple(mistakes))
    setup.choose("/a.py")
    settle()
    click(setup, "mend-file-only-here")
    settle()
    asked = core.asked(PlanRun)[-1]
    assert isinstance(asked, PlanRun)
    assert asked.spec.data == {"photos": "/a/photos", "photos-2": "/b/photos"}


def test_a_run_that_would_be_one_alone_is_asked_about_before_it_starts(
    core: FakeCore, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked(), world.lost())
    setup.choose("/a.py")
    settle()
    click(setup, "train")
    core.flush()
    assert not core.asked(StartRun)
    asked = setup.problem.problem
    assert asked is not None and "on this laptop alone, without Bob's laptop (not connected)" in asked.what
    assert setup.train.text() == "Train alone"
    core.happen(*world.linked())
    settle()
    assert setup.problem.problem is None and setup.train.text() == "Train on 2 laptops"
    core.happen(world.lost())
    settle()
    for _ in range(2):
        click(setup, "train")
    core.flush()
    (begun,) = core.asked(StartRun)
    assert isinstance(begun, StartRun) and begun.spec.solo


def test_train_cannot_be_pressed_twice(core: FakeCore, setup: TrainSetup, settle: Settle) -> None:
    setup.choose("/a.py")
    settle()
    core.held = True
    click(setup, "train")
    assert not setup.train.isEnabled()
    core.release()
    core.flush()
    assert len(core.asked(StartRun)) == 1


THEN = RunSpec(
    script="/home/ada/digits/digits.py",
    arguments=("--epochs", "3"),
    devices=(OTHER,),
    roles={OTHER: (Role.CHIEF,), ME: (Role.WORKER,)},
    shares={ME: 25, OTHER: 75},
    strategy="managed",
    seed=7,
    wire="bf16",
    sync="rare=32",
)


def test_run_again_restores_everything_that_was_chosen(
    core: FakeCore, view: TrainView, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked())
    view.run_again(world.entry(spec=THEN))
    settle()
    assert setup.roles.rows[OTHER].role.currentText() == "chief"
    assert setup.roles.by_hand.isChecked()
    chosen = setup.options.chosen(RunDraft())
    assert (chosen.seed, chosen.strategy, chosen.options.wire) == (7, "managed", "bf16")
    assert setup.options.is_open, "what is not as usual is in sight"
    assert setup.options._rare.isChecked() and chosen.options.sync == "rare=32"
    click(setup, "train")
    assert core.asked(StartRun) == [StartRun(spec=THEN)]


def test_a_laptop_of_then_that_is_missing_now_is_named_with_its_mend(
    core: FakeCore, view: TrainView, setup: TrainSetup, settle: Settle
) -> None:
    view.run_again(world.entry(spec=THEN))
    settle()
    assert "Bob's laptop took part then but is no longer paired" in words(setup)
    core.happen(*world.linked(), world.lost())
    settle()
    assert "Bob's laptop is not connected, so this run goes without it" in words(setup)
    assert "took part then" not in words(setup)
    core.happen(*world.linked())
    settle()
    assert "goes without it" not in words(setup)
    setup.start()
    assert core.asked(StartRun) == [StartRun(spec=THEN)], "what it had then was not lost meanwhile"


def test_a_disk_that_fills_up_elsewhere_is_seen_without_a_new_plan(
    core: FakeCore, view: TrainView, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked(), world.told(OTHER, world.reading(disk_free_bytes=400 * world.GIB)))
    view.choose("/home/ada/digits/digits.py")
    settle()
    assert setup.train.isEnabled()
    asked = len(core.asked(PlanRun))
    core.happen(world.told(OTHER, world.reading(disk_free_bytes=1 << 20)))
    assert "Only 1 MB is free on the disk of Bob's laptop: a run would fail." in words(setup)
    assert not setup.train.isEnabled()
    assert len(core.asked(PlanRun)) == asked


def test_a_drag_of_a_file_marks_the_place(qtbot: QtBot, setup: TrainSetup) -> None:
    from PySide6.QtGui import QDragEnterEvent

    data = files("/a.py")
    event = QDragEnterEvent(
        QPoint(5, 5),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    setup.drop.dragEnterEvent(event)
    assert event.isAccepted()
    assert setup.drop.property("chosen") == "true"


def planned_as_own(command: Command) -> PlanMade | Refused:
    assert isinstance(command, PlanRun)
    return world.planned(replace(command, spec=replace(command.spec, strategy="own")))


def test_laptops_on_slow_networks_may_meet_rarely(core: FakeCore, setup: TrainSetup) -> None:
    setup.prepare(RunDraft(script="/a.py"))
    setup.options._rare.click()
    assert setup.draft.options == RunOptions(sync="rare")
    setup.options._rare.click()
    assert setup.draft.options == RunOptions()


def test_the_others_may_be_told_to_wait_for_a_laptop_that_is_away(core: FakeCore, setup: TrainSetup) -> None:
    setup.prepare(RunDraft(script="/a.py"))
    waits = setup.options._waits
    assert not waits.isChecked() and setup.draft.options.go_on_s == GO_ON_S
    waits.click()
    assert setup.draft.options == RunOptions(go_on_s=AWAY_S)
    waits.click()
    assert setup.draft.options == RunOptions()
    setup.prepare(RunDraft(script="/a.py", options=RunOptions(go_on_s=AWAY_S)))
    assert waits.isChecked()


def test_a_sealed_script_may_be_kept_from_downloading(
    core: FakeCore, together: TrainSetup, settle: Settle
) -> None:
    together.ready.more.head.click()
    together.options.head.click()
    downloads = together.options._downloads
    assert not downloads.isVisible(), "with model.fit nothing is sealed"
    core.answers[AnalyseScript] = world.script_read(kind="own", strategies=("ParameterServerStrategy",))
    core.answers[PlanRun] = planned_as_own
    together.choose("/own.py")
    settle()
    together.options.head.setChecked(True)
    assert downloads.isVisible() and downloads.isChecked()
    downloads.click()
    settle()
    core.answers[PlanRun] = Refused(problem=Problem(code="not-sealed", what="It cannot be sealed.", fix="x."))
    core.happen(*world.linked())
    together._change(together.draft)
    settle()
    assert not together.train.isEnabled()
    assert downloads.isVisible(), "who forbade it can take that back"
    core.answers[PlanRun] = planned_as_own
    together._change(together.draft)
    settle()
    click(together, "train")
    core.flush()
    (begun,) = core.asked(StartRun)
    assert isinstance(begun, StartRun) and not begun.spec.downloads
    core.happen(ev.BusyChanged(device=OTHER, busy=True))
    downloads.click()
    settle()
    assert together.draft.options.downloads and not downloads.isVisible(), "alone it is an ordinary process"


def test_what_is_forbidden_a_script_is_in_sight_when_its_run_is_repeated(
    core: FakeCore, view: TrainView, setup: TrainSetup, settle: Settle
) -> None:
    core.happen(*world.linked())
    core.answers[AnalyseScript] = world.script_read(kind="own", strategies=("ParameterServerStrategy",))
    core.answers[PlanRun] = planned_as_own
    then = RunSpec(script="/home/ada/digits/digits.py", devices=(OTHER,), downloads=False)
    view.run_again(world.entry(spec=then))
    settle()
    assert setup.options.is_open
    assert setup.options._downloads.isVisible() and not setup.options._downloads.isChecked()


def choose_what_cannot_be_sealed(core: FakeCore, setup: TrainSetup, settle: Settle) -> None:
    core.happen(*world.linked())
    why = Problem(code="not-sealed", what="It cannot be sealed.", fix="Train by model.fit.")
    core.answers[PlanRun] = Refused(problem=why)
    setup.choose("/a.py")
    settle()
    assert not setup.train.isEnabled()


@pytest.mark.parametrize("mended", [ME, OTHER])
def test_a_laptop_that_can_seal_now_is_planned_with_at_once(
    core: FakeCore, setup: TrainSetup, settle: Settle, mended: DeviceId
) -> None:
    choose_what_cannot_be_sealed(core, setup, settle)
    core.answers[PlanRun] = planned_as_own
    core.happen(ev.SealChanged(device=mended, seal="namespace"))
    settle()
    assert setup.train.isEnabled()


def test_what_was_accepted_for_one_script_is_not_for_the_next(setup: TrainSetup) -> None:
    setup.prepare(RunDraft(script="/a.py", options=RunOptions(accept_differences=True)))
    setup.choose("/a.py")
    assert setup.draft.options.accept_differences
    setup.choose("/b.py")
    assert not setup.draft.options.accept_differences


def test_a_script_can_ask_for_files_of_another_laptop(
    core: FakeCore, together: TrainSetup, settle: Settle
) -> None:
    name = next(device.name for device in together._bridge.state.devices.values())
    opens = together.options._opens
    opens.setText(f'"{name}=~/Pictures" nobody=/data')
    opens.textEdited.emit(opens.text())
    settle()
    assert not together.train.isEnabled(), "nobody is called that"
    opens.setText(f'"{name}=~/Pictures"')
    opens.textEdited.emit(opens.text())
    settle()
    click(together, "train")
    core.flush()
    (begun,) = core.asked(StartRun)
    assert isinstance(begun, StartRun)
    assert begun.spec.opens == {OTHER: (Access(path="~/Pictures"),)}


def test_a_project_that_is_gone_since_says_so(core: FakeCore, view: TrainView) -> None:
    why = Problem(code="script-missing", what="There is no script at /home/ada.", fix="Check the path.")
    core.answers[AnalyseScript] = Refused(problem=why)
    view.run_again(world.entry())
    core.flush()
    assert view.setup.problem.problem == why


def test_a_run_of_the_history_is_prepared_again(
    core: FakeCore, view: TrainView, setup: TrainSetup, settle: Settle
) -> None:
    entry = world.entry()
    view.run_again(replace(entry, arguments=("--name", "two words")))
    settle()
    assert setup.arguments.text() == "--name 'two words'"
    assert core.asked(AnalyseScript) == [AnalyseScript(path="/home/ada/digits/digits.py")]
