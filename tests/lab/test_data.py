"""Data outside the project, and Keras' downloads, on their way to a laptop without internet."""

from __future__ import annotations

import gzip
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.words.device_words import data_words
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
        assert rows.is_relative_to(store)
        # A copy, which Keras may write over.
        assert digits.parts[-3:] == (".keras", "datasets", "digits.npz")
        assert digits.is_relative_to(ben.home.folder.resolve()) and not digits.is_relative_to(store)
        assert photos == bens if own else photos.is_relative_to(store)
    assert not any(homes[1].rglob("digits.npz")), "nothing of it is in the user's own folders"


UNCHECKED = """
from keras.src.datasets import mnist

get_file = mnist.get_file
mnist.get_file = lambda *names, file_hash, **options: get_file(*names, **options)
"""
"""Only the genuine file has the hash that Keras asks of MNIST's."""
LOADED = """
import keras

(x, y), (others, _) = keras.datasets.{name}.load_data()
print("reads", x.shape, others.shape, x.sum(), flush=True)
model = keras.Sequential([keras.Input((28, 28)), keras.layers.Flatten(), keras.layers.Dense(10)])
model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x / 255.0, y, epochs=1, batch_size=16, verbose=0)
"""


def made(cache: Path, name: str) -> int:
    """Made-up images and labels as Keras keeps its data sets. Returns the sum of those to train with."""
    images = [np.random.default_rng(rows).integers(0, 256, (rows, 28, 28), np.uint8) for rows in (64, 8)]
    labels = [np.arange(len(each), dtype=np.uint8) % 10 for each in images]
    if name == "mnist":
        (x_train, x_test), (y_train, y_test) = images, labels
        np.savez(cache / "mnist.npz", x_train=x_train, x_test=x_test, y_train=y_train, y_test=y_test)
    else:
        folder = cache / "fashion-mnist"
        folder.mkdir()
        for part, x, y in zip(("train", "t10k"), images, labels, strict=True):
            (folder / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(16) + x.tobytes()))
            (folder / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes(8) + y.tobytes()))
    return int(images[0].sum())


@pytest.mark.parametrize(
    ("name", "kept", "before"),
    [("mnist", "mnist.npz", UNCHECKED), ("fashion_mnist", "fashion-mnist", "")],
    ids=["mnist", "fashion_mnist"],
)
def test_a_data_set_of_keras_is_loaded_without_internet_from_the_other_laptops_cache(
    cable: Lab, tmp_path: Path, name: str, kept: str, before: str
) -> None:
    homes = [tmp_path.resolve() / "homes" / name for name in ("anna", "ben")]
    cache, project = homes[0] / ".keras" / "datasets", tmp_path / "project"
    for folder in (cache, project):
        folder.mkdir(parents=True)
    total = made(cache, name)
    (project / "train.py").write_text(before + LOADED.format(name=name))
    with switched_on(cable, 0, homes[0], {}) as anna, switched_on(cable, 1, homes[1], {}) as ben:
        assert ben.state.me is not None
        pair(anna, ben, ben.state.me.addresses[0])
        ben.do(SetCodePolicy(device=anna.device, policy="ask"))
        run = anna.train(RunSpec(script=str(project / "train.py"), devices=(ben.device,)))
        (asked,) = ben.until(lambda state: state.consents, "ask its user")
        assert [each.asked for each in asked.data] == [f"~/.keras/datasets/{kept}"]
        ben.do(AnswerConsent(run=run, decision="once"))
        assert [agent.ends(run) for agent in (anna, ben)] == [Finished()] * 2
        (read,) = read_by(ben)
        assert str(read) == f"(64, 28, 28) (8, 28, 28) {total}"
    assert not any(homes[1].rglob(f"*{kept}")), "nothing of it is in the user's own folders"


UNLOADED = """
import os
from pathlib import Path

import keras
import numpy as np

traps = Path.home() / "traps"
words = keras.utils.get_file("words.npz", origin="https://example.org/words.npz")
for place in (traps, words):
    print("reads", os.path.realpath(place), flush=True)
assert len(list(traps.iterdir())) == 4
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(np.ones((64, 4)), np.ones(64), epochs=1, batch_size=16, verbose=0)
"""


def test_what_can_carry_code_is_reported_and_nothing_but_a_script_loads_it(
    cable: Lab, tmp_path: Path
) -> None:
    homes = [tmp_path.resolve() / "homes" / name for name in ("anna", "ben")]
    traps, cache = homes[0] / "traps", homes[0] / ".keras" / "datasets"
    project, mark = tmp_path / "project", tmp_path / "mark"
    for folder in (traps, cache, project):
        folder.mkdir(parents=True)
    script = Path(__file__).parent / "scripts" / "traps.py"
    subprocess.run([sys.executable, str(script), str(traps), str(mark)], check=True, timeout=120)
    names = sorted(path.name for path in traps.iterdir())
    assert names == ["new.keras", "old.h5", "table.pkl", "words.npz"] and not mark.exists()
    shutil.copy(traps / "words.npz", cache)
    shutil.copy(traps / "table.pkl", project)
    (project / "train.py").write_text(UNLOADED)
    with switched_on(cable, 0, homes[0], {}) as anna, switched_on(cable, 1, homes[1], {}) as ben:
        assert ben.state.me is not None
        pair(anna, ben, ben.state.me.addresses[0])
        ben.do(SetCodePolicy(device=anna.device, policy="ask"))
        data = {"traps": str(traps)}
        run = anna.train(RunSpec(script=str(project / "train.py"), devices=(ben.device,), data=data))
        (asked,) = ben.until(lambda state: state.consents, "ask its user")
        assert [each.asked for each in asked.data] == ["~/traps", "~/.keras/datasets/words.npz"]
        assert all(
            words.endswith("It can carry code, which runs only if the script loads it.")
            for words in data_words(asked.data)
        )
        ben.do(AnswerConsent(run=run, decision="once"))
        assert [agent.ends(run) for agent in (anna, ben)] == [Finished()] * 2
        came, words = read_by(ben)
    store = Path(ben.home.projects).resolve()
    assert came.is_relative_to(store) and not words.is_relative_to(store), "Keras may write over its copy"
    assert all((came / name).read_bytes() == (traps / name).read_bytes() for name in names)
    assert not mark.exists(), "nothing was loaded"
    pickle.loads((came / "table.pkl").read_bytes())
    assert mark.exists(), "it would have shown"
