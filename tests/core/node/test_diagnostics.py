"""The diagnostics contain helpful data and nothing private."""

import zipfile
from pathlib import Path

import pytest

from core.doctor.view import ok
from core.home import identity
from core.home.home import Home, prepare
from core.node import diagnostics
from core.vocabulary import events as ev
from core.vocabulary.errors import Problem, TandemError
from core.vocabulary.phases import Exit, Failed
from core.vocabulary.progress import LogLines
from core.vocabulary.state import State, apply
from tests.core.fake_node import ME, OTHER, started
from tests.core.samples import sample
from tests.core.vocabulary.test_state import PLAN, RUN


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    prepare(home)
    identity.load_or_create(home.identity)
    (home.logs / "tandem.log").write_text("a line of the log\n")
    (home.folder / "trust.json").write_text("{}")
    (home.runs / "secret.txt").write_text("output")
    return home


def read(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_the_diagnostics_hold_log_findings_versions_and_state(home: Home, tmp_path: Path) -> None:
    path = diagnostics.save(tmp_path / "d.zip", home, apply(State(), started()), [ok("a", "b", "Fine.")])

    content = read(path)

    assert set(content) == {"versions.json", "system.txt", "findings.json", "state.json", "logs/tandem.log"}
    assert content["logs/tandem.log"] == "a line of the log\n"
    assert "Fine." in content["findings.json"]
    assert path.stat().st_mode & 0o077 == 0


def test_the_diagnostics_hold_no_keys_scripts_outputs_or_codes(home: Home, tmp_path: Path) -> None:
    printed = LogLines(task="chief:0", stream="stdout", text="printed by a script")
    state = apply(State(), started())
    for event in (
        ev.RunPlanned(plan=sample(ev.RunPlanned).plan),
        ev.PairingBegan(incoming=True, name="x", address="y"),
        ev.PairingCodeShown(device=OTHER, name="x", code="408 355"),
        sample(ev.ConsentAsked),
    ):
        state = apply(state, event)
    spoken = diagnostics.save(tmp_path / "d.zip", home, state, [])
    running = apply(apply(State(), started()), ev.RunPlanned(plan=PLAN))
    traceback = Problem(code="script-error", what="It failed.", detail='line 3: PASSWORD = "hunter2"')
    died = Exit(reason="script-error", problem=traceback)
    for event in (
        ev.MemberLogged(run=RUN, device=ME, lines=printed),
        ev.MemberEnded(run=RUN, device=ME, task="chief:0", exit=died),
        ev.RunPhaseChanged(run=RUN, phase=Failed(problem=traceback)),
    ):
        running = apply(running, event)
    ran = diagnostics.save(tmp_path / "e.zip", home, running, [])

    everything = "\n".join([*read(spoken).values(), *read(ran).values()])
    assert "train.py" in everything
    assert everything.count("It failed.") == 2
    for secret in ("PRIVATE KEY", "408 355", "printed by a script", "output", "hunter2"):
        assert secret not in everything


def test_the_users_folder_is_not_named(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    (home.logs / "tandem.log").write_text(f"reads {tmp_path}/train.py\n")

    content = read(diagnostics.save(tmp_path / "d.zip", home, State(), []))

    assert content["logs/tandem.log"] == "reads ~/train.py\n"


def test_a_folder_gets_a_file_with_a_name_of_its_own(home: Home, tmp_path: Path) -> None:
    path = diagnostics.save(tmp_path, home, State(), [])

    assert path.parent == tmp_path
    assert path.name.startswith("tandem-diagnostics-")


def test_another_file_is_never_overwritten(home: Home, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")

    with pytest.raises(TandemError) as failure:
        diagnostics.save(tmp_path / "thesis.txt", home, State(), [])

    assert failure.value.code == "file-exists"
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_place_that_cannot_be_written_is_named(home: Home, tmp_path: Path) -> None:
    with pytest.raises(TandemError) as failure:
        diagnostics.save(tmp_path / "missing" / "d.zip", home, State(), [])

    assert failure.value.code == "diagnostics-unwritable"
