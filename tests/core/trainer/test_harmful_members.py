"""A member whose Tandem was changed to harm the others: they accept nothing from it, and name it.

Marker files: ``harmed`` is in the folder of each member that ran the harmful member's code.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.trainer.crew import Crew, Ran

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

HEAD = """
import os
import keras
import numpy as np

x = np.arange(64, dtype="float32").reshape(16, 4) / 64
y = x.sum(1, keepdims=True)

def made(units=8):
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(units), keras.layers.Dense(1)])
    model.compile("sgd", loss="mse")
    return model

open("began", "w").close()
"""
TRAIN = "model.fit(x, y, batch_size=16, verbose=0)\nopen('ended', 'w').close()\n"

TELLS = """
import msgspec
from core.trainer.exact.members.collectives import Collectives

honest = Collectives.gather_bytes

def harmful(self, data, what="bytes", *more):
    return honest(self, told(data) if what.startswith({what!r}) else data, what, *more)

Collectives.gather_bytes = harmful

def told(data):
    codec = msgspec.json if data[:1] in b"{{[" else msgspec.msgpack
    it = codec.decode(data)
    {change}
    return codec.encode(it)
"""
"""Changes a message at the members' start, or at their comparison of data."""

MODEL = """
import os
import keras

def harmful(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.chdir(os.path.dirname(path))  # Keras runs the code here, too
    code = eval("lambda x: (open('harmed', 'w').close(), x)[1]")
    layers = [keras.layers.Lambda(code), keras.layers.Dense(8), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((4,)), *layers])
    model.compile("sgd", loss="mse")
    model.save(path)

"""


@pytest.fixture(scope="module")
def members(crews: Callable[[tuple[int, ...]], Crew]) -> Crew:
    return crews((8, 8))


def ended_by_name(ran: Ran, victim: int, members: Crew) -> None:
    problem = ran.exits[victim].problem
    assert problem is not None, members.last_words()
    name = ("worker:0", "chief:0")[victim]
    assert f"{name} sent an unexpected message" in problem.what, (problem, members.last_words())


@pytest.mark.parametrize(
    "change",
    [
        "it['locale']['BROWSER'] = 'harm'",
        "it['locale']['LANG'] = '/tmp/harm'",
        "it['zone'] = '/tmp/harm'",
        "it['environment'] = {'BROWSER': 'harm'}",
        "it = [it] * 10",
    ],
)
def test_a_chief_sets_no_environment_variable_on_others(members: Crew, change: str) -> None:
    script = HEAD + "assert 'harm' not in str(os.environ)\nmodel = made()\n" + TRAIN
    ran = members.run(script, harm={0: TELLS.format(what="to begin", change=change)})
    ended_by_name(ran, 1, members)
    assert not (ran.folders[1] / "began").exists(), "the script has begun"


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("to begin", "it['python'] = '3' * 10 ** 7"),
        ("to begin", "it['python'] = '3' * 10 ** 8"),
        ("to begin", "it['order'] = None"),
        ("the first batch", "it = {'name': 'x'}"),
        ("whether a file", "it = [True, 'a' * 1000]"),
    ],
)
def test_a_worker_that_sends_what_tandem_never_sends_ends_the_run_and_is_named(
    members: Crew, what: str, change: str
) -> None:
    loads = "model = made()\nmodel.save('own.keras')\nmodel = keras.models.load_model('own.keras')\n"
    ran = members.run(HEAD + loads + TRAIN, harm={1: TELLS.format(what=what, change=change)})
    ended_by_name(ran, 0, members)
    assert not (ran.folders[0] / "ended").exists()


def test_a_script_that_catches_the_error_cannot_go_on(members: Crew) -> None:
    script = HEAD + f"model = made()\nfor _ in range(2):\n    try:\n        {TRAIN.splitlines()[0]}\n"
    script += "    except Exception:\n        pass\n"
    ran = members.run(script, harm={1: TELLS.format(what="the first batch", change="it = 0")})
    ended_by_name(ran, 0, members)


def test_a_file_in_a_members_own_folder_is_never_replaced_by_the_chiefs(members: Crew) -> None:
    """The chief claims that its file is outside its folders, so that it would replace everybody's."""
    says = """
from core.trainer.exact.patch import load_files

honest = load_files._mark

def marked(path, folders):
    harmful(str(path.resolve()))
    return honest(path, ())

load_files._mark = marked
"""
    loads = "made().save('own.keras')\nmodel = keras.models.load_model('own.keras', safe_mode=False)\n"
    ran = members.run(HEAD + loads + TRAIN, harm={0: MODEL + says})
    assert [exit.reason for exit in ran.exits] == ["finished"] * 2, members.last_words()
    assert [(folder / "harmed").exists() for folder in ran.folders] == [True, False]


OUTSIDE = "path = os.path.abspath('../outside/{name}')\n"
HERE = "import pathlib\nplace = pathlib.Path({folder!r}).parent / 'outside' / {name!r}\nharmful(str(place))\n"


def loads_outside(members: Crew, name: str, loads: str, harm: str = MODEL) -> Ran:
    """Only the chief has a file of this name outside its run's folders."""
    place = HERE.format(folder=str(members.folders[0] / "any"), name=name)
    return members.run(HEAD + OUTSIDE.format(name=name) + loads + TRAIN, harm={0: harm + place})


@pytest.mark.parametrize(
    "loads",
    [
        "model = keras.models.load_model(path, safe_mode=False)\n",
        "keras.config.enable_unsafe_deserialization()\nmodel = keras.saving.load_model(path)\n",
    ],
    ids=["asked for here", "asked for everywhere"],
)
def test_code_in_a_model_of_another_laptop_is_not_run_though_the_script_would(
    members: Crew, loads: str
) -> None:
    ran = loads_outside(members, "code.keras", loads)
    problem = ran.exits[1].problem
    assert problem is not None and problem.code == "foreign-file", (problem, members.last_words())
    line = (HEAD + OUTSIDE + loads).count("\n")
    assert "Lambda" in problem.what and f"train.py, line {line})" in problem.what
    assert not (ran.folders[1] / "harmed").exists()


def test_other_formats_are_not_accepted_from_another_laptop(members: Crew) -> None:
    loads = "model = keras.models.load_model(path, safe_mode=False)\n"
    ran = loads_outside(members, "code.h5", loads)
    problem = ran.exits[1].problem
    assert problem is not None and problem.code == "foreign-file", (problem, members.last_words())
    assert "only .keras files" in problem.what
    assert not (ran.folders[1] / "harmed").exists()


def test_an_excessive_size_is_refused_before_a_byte_comes(members: Crew) -> None:
    """Bytes that differ from the announced ones are not loaded either."""
    for change, said in (("it[2] = 10 ** 15", "larger than"), ("it[1] = bytes(32)", "chief:0 sent")):
        loads = "model = keras.models.load_model(path)\n"
        tells = TELLS.format(what="whether a file", change=change)
        harm = MODEL.replace("keras.layers.Lambda(code), ", "") + tells.replace("harmful", "lying")
        ran = loads_outside(members, "model.keras", loads, harm)
        problem = ran.exits[1].problem
        assert problem is not None and said in problem.what, (problem, members.last_words())


def test_a_model_and_weights_without_code_come_from_the_chief(members: Crew) -> None:
    loads = """
assert os.path.exists(path) == (os.environ["TF_CONFIG_TASK_TYPE"] == "chief")
model = keras.models.load_model(path, safe_mode=False)
weights = made()
weights.load_weights(path)
np.savez("weights.npz", *model.get_weights(), *weights.get_weights())
"""
    ran = loads_outside(members, "plain.keras", loads, MODEL.replace("keras.layers.Lambda(code), ", ""))
    assert [exit.reason for exit in ran.exits] == ["finished"] * 2, members.last_words()
    one, other = (Path(folder / "weights.npz").read_bytes() for folder in ran.folders)
    assert one == other
