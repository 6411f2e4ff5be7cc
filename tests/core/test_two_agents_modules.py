"""Two agents, one without a module that the script imports: reported in the plan, and before the start."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.home.home import Home
from core.vocabulary.answers import PlanMade
from core.vocabulary.commands import AskToInstall, Install, PlanRun, SetCodePolicy, StartRun
from core.vocabulary.errors import INSTALL_ASKED, INSTALLED, Problem
from core.vocabulary.phases import Finished, ended
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import Settings
from core.vocabulary.state import State
from tests.lab.agent import TRAINED_S, Agent
from tests.lab.lab import pair

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SCRIPT = """
import keras
{imports}
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(loss="mse")
model.fit(x, y)
"""

INSTALLING = """
import keras
import numpy
import tandem_test_tables
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(loss="mse")
model.fit(numpy.zeros((64, 2)), numpy.full((64, 1), tandem_test_tables.ROWS), epochs=2)
"""


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[tuple[Agent, Agent]]:
    """``rare_tables`` and the package ``tandem-test-tables`` are only on anna's laptop, ``rarer_tables``
    nowhere. Ben can install the package, from a folder."""
    (tmp_path / "annas").mkdir()
    (tmp_path / "index").mkdir()
    _make_package(tmp_path / "index", tmp_path / "annas")
    bens = str(tmp_path / "bens")
    from_folder = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "PIP_TARGET": bens}
    (tmp_path / "annas" / "rare_tables.py").write_text("")
    settings = {"port": 0, "interfaces": ("lo",), "discovery": False}
    with (
        Agent(
            Home(tmp_path / "anna"),
            settings=Settings(name="anna", **settings),  # type: ignore[arg-type]
            environment={"PYTHONPATH": str(tmp_path / "annas")},
        ) as anna,
        Agent(
            Home(tmp_path / "ben"),
            settings=Settings(name="ben", **settings),  # type: ignore[arg-type]
            environment={"PYTHONPATH": bens, **from_folder},
        ) as ben,
    ):
        assert ben.state.me is not None
        pair(anna, ben, ben.state.me.addresses[0])
        ben.do(SetCodePolicy(device=anna.device, policy="always"))
        yield anna, ben


def test_a_module_that_one_laptop_lacks_is_reported_before_the_start(
    agents: tuple[Agent, Agent], tmp_path: Path
) -> None:
    anna, ben = agents
    folder = tmp_path / "somewhere" / "project"
    folder.mkdir(parents=True)
    script = folder / "train.py"

    def spec(imports: str, *, solo: bool = False) -> RunSpec:
        script.write_text(SCRIPT.format(imports=imports))
        return RunSpec(script=str(script), devices=() if solo else (ben.device,), solo=solo)

    # surely needed: no plan, no run, and a command for ben's environment
    needing = spec("import rare_tables")
    for command in (PlanRun(spec=needing), StartRun(spec=needing)):
        problem = anna.refused(command)
        assert problem.code == "modules-missing"
        assert problem.what.startswith(
            "rare_tables is missing on ben: the script imports rare_tables in train.py"
        )
        assert problem.fix.startswith("rare_tables is in a folder of this laptop: put it beside the script")
    assert anna.state.run is None and ben.state.run is None and not anna.trainers()

    problem = anna.refused(StartRun(spec=spec("import rarer_tables")))
    assert problem.what.startswith("rarer_tables is missing on ben (and here)")
    assert "On ben, install it with `" in problem.fix and "pip install rarer-tables`." in problem.fix

    # perhaps needed: a warning of the plan
    plan = anna.ask(PlanRun(spec=spec("def load():\n    import rare_tables")))
    assert isinstance(plan, PlanMade)
    assert [each.code for each in plan.warnings] == ["modules-missing"]

    # guarded, alone on the laptop that has it, or beside the script: nothing to report
    (folder / "rarer_tables.py").write_text("")
    for fine in (
        spec("try:\n    import rare_tables\nexcept ImportError:\n    pass"),
        spec("import rare_tables", solo=True),
        spec("import rarer_tables"),
    ):
        plan = anna.ask(PlanRun(spec=fine))
        assert isinstance(plan, PlanMade) and plan.warnings == ()


def test_missing_modules_are_installed_on_that_laptop_and_the_run_trains(
    agents: tuple[Agent, Agent], tmp_path: Path
) -> None:
    anna, ben = agents
    script = tmp_path / "project" / "train.py"
    script.parent.mkdir()
    script.write_text(INSTALLING)
    spec = RunSpec(script=str(script), devices=(ben.device,))
    assert anna.refused(PlanRun(spec=spec)).command_on == "ben"
    assert anna.refused(Install(device=ben.device, packages=("tandem-test-tables",))).code == "not-asked"

    anna.do(AskToInstall(device=ben.device))
    asked = ben.until(lambda state: _notice(state, INSTALL_ASKED), "hear what anna asks")
    assert asked.detail.split() == [anna.device, "tandem-test-tables==1.0"]
    assert anna.refused(PlanRun(spec=spec)).code == "modules-missing"
    ben.do(Install(device=anna.device, packages=("tandem-test-tables==1.0",)))

    def installed(state: State) -> bool | None:
        told = _notice(state, INSTALLED)
        assert told is not None and "could not" not in told.what, told
        return told.what == "tandem-test-tables==1.0 is installed on ben." or None

    anna.until(installed, "hear that it is installed")

    plan = anna.ask(PlanRun(spec=spec))
    assert isinstance(plan, PlanMade) and plan.warnings == ()
    anna.ask(StartRun(spec=spec))
    run = anna.until(
        lambda state: state.run if state.run is not None and ended(state.run.phase) else None,
        "train with ben",
        TRAINED_S,
    )
    assert isinstance(run.phase, Finished) and len(run.plan.members) == 2, run.phase


def _notice(state: State, code: str) -> Problem | None:
    return next((each for each in state.notices if each.code == code), None)


def _make_package(index: Path, folder: Path) -> None:
    """A wheel in ``index``, and unpacked in ``folder``."""
    info = "tandem_test_tables-1.0.dist-info"
    parts = {
        "tandem_test_tables.py": "ROWS = 3\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: tandem-test-tables\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/top_level.txt": "tandem_test_tables\n",
    }
    parts[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in (*parts, f"{info}/RECORD"))
    wheel = index / "tandem_test_tables-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in parts.items():
            file.writestr(name, text)
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
