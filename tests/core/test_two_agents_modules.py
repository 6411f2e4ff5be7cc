"""Two agents, one without a module that the script imports: reported in the plan, and before the start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.home.home import Home
from core.vocabulary.answers import PlanMade
from core.vocabulary.commands import PlanRun, SetCodePolicy, StartRun
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import Settings
from tests.lab.agent import Agent
from tests.lab.lab import pair

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SCRIPT = """
import keras
{imports}
model = keras.Sequential([keras.layers.Dense(1)])
model.compile(loss="mse")
model.fit(x, y)
"""


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[tuple[Agent, Agent]]:
    """``rare_tables`` is only on anna's laptop, ``rarer_tables`` nowhere."""
    (tmp_path / "annas").mkdir()
    (tmp_path / "annas" / "rare_tables.py").write_text("")
    settings = {"port": 0, "interfaces": ("lo",), "discovery": False}
    with (
        Agent(
            Home(tmp_path / "anna"),
            settings=Settings(name="anna", **settings),  # type: ignore[arg-type]
            environment={"PYTHONPATH": str(tmp_path / "annas")},
        ) as anna,
        Agent(Home(tmp_path / "ben"), settings=Settings(name="ben", **settings)) as ben,  # type: ignore[arg-type]
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
        assert problem.fix.startswith("rare_tables lies in a folder of this laptop: put it beside the script")
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
