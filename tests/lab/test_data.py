"""Data outside the project, and Keras' downloads, on their way to a laptop without internet."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from core.vocabulary.commands import AnswerConsent, SetCodePolicy
from core.vocabulary.phases import Finished
from core.vocabulary.plan import RunSpec
from core.vocabulary.settings import Settings
from tests.lab.agent import Agent
from tests.lab.lab import Lab, pair

SCRIPT = """
import os
from pathlib import Path

import keras
import numpy as np

ROOT = {shelf!r}
digits = keras.utils.get_file("digits.npz", origin="https://example.org/digits.npz")
rows = os.path.join(ROOT, "numbers", "rows.npy")
photos = Path.home() / "photos"
for place in (digits, rows, photos):
    print("reads", os.path.realpath(place), flush=True)
assert len(list(photos.glob("*.txt"))) == 3
x, y = np.load(rows), np.load(digits)["y"]
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, epochs=2, batch_size=16, verbose=0)
"""

pytestmark = [pytest.mark.lab, pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture
def cable(namespaces: None, tmp_path: Path) -> Iterator[Lab]:
    with Lab(tmp_path) as lab:
        yield lab


def switched_on(lab: Lab, host: int, home: Path, data: dict[str, str]) -> Agent:
    """Its user has a home of their own."""
    home.mkdir(exist_ok=True)
    name = lab.home(host).folder.name
    settings = Settings(name=name, first_run_done=True, data=data)
    return Agent(lab.home(host), enter=lab.enter(host), settings=settings, environment={"HOME": str(home)})


def read_by(agent: Agent) -> list[Path]:
    """What the script read on its laptop, in order."""
    log = "\n".join(agent.run().members[agent.device].log.get("worker:0", ()))
    return [Path(line.removeprefix("reads ")) for line in log.splitlines() if line.startswith("reads ")]


@pytest.mark.parametrize("own", [False, True], ids=["sent", "there already"])
def test_a_laptop_without_internet_trains_with_data_and_downloads_of_another(
    cable: Lab, tmp_path: Path, own: bool
) -> None:
    tmp_path = tmp_path.resolve()
    homes = [tmp_path / "homes" / name for name in ("anna", "ben")]
    shelf, project, bens = tmp_path / "shelf", tmp_path / "project", tmp_path / "photos of Ben"
    for folder in (homes[0] / "photos", homes[0] / ".keras" / "datasets", shelf / "numbers", project):
        folder.mkdir(parents=True)
    for number in range(3):
        (homes[0] / "photos" / f"{number}.txt").write_text(f"photo {number}")
    np.save(shelf / "numbers" / "rows.npy", np.arange(256.0).reshape(64, 4) / 256)
    np.savez(homes[0] / ".keras" / "datasets" / "digits.npz", y=np.arange(64.0) / 64)
    shutil.copytree(homes[0] / "photos", bens)
    (project / "train.py").write_text(SCRIPT.format(shelf=str(shelf)))
    data = {"photos": str(homes[0] / "photos"), "numbers": str(shelf / "numbers")}
    ours = {"photos": str(bens)} if own else {}
    with switched_on(cable, 0, homes[0], {}) as anna, switched_on(cable, 1, homes[1], ours) as ben:
        assert ben.state.me is not None
        pair(anna, ben, ben.state.me.addresses[0])
        ben.do(SetCodePolicy(device=anna.device, policy="ask"))
        run = anna.train(RunSpec(script=str(project / "train.py"), devices=(ben.device,), data=data))
        (asked,) = ben.until(lambda state: state.consents, "ask its user")
        assert [each.asked for each in asked.data] == [
            "~/photos",
            str(shelf / "numbers"),
            "~/.keras/datasets/digits.npz",
        ]
        # Without walls nothing has to be opened.
        assert [each.path for each in asked.opened] == [str(bens)] * (own and asked.walls == "default")
        ben.do(AnswerConsent(run=run, decision="once"))
        assert [agent.ends(run) for agent in (anna, ben)] == [Finished()] * 2
        store = Path(ben.home.projects).resolve()
        digits, rows, photos = read_by(ben)
        assert digits.is_relative_to(store) and rows.is_relative_to(store)
        assert photos == bens if own else photos.is_relative_to(store)
    assert not any(homes[1].rglob("digits.npz")), "nothing of it is in the user's own folders"
