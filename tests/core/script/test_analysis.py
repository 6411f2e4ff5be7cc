import os
from pathlib import Path

import pytest

from core.script.analysis import ScriptReport, analyse
from core.vocabulary import wire
from core.vocabulary.errors import TandemError
from tests.core.project.making import write

MANAGED = """
import keras
model = keras.Sequential([keras.layers.Dense(10)])
model.compile(loss="mse")
model.fit(x, y, epochs=2)
"""

OWN = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential()
model.fit(x)
"""

LOOP = """
import tensorflow as tf
for x, y in data:
    with tf.GradientTape() as tape:
        loss = f(x, y)
    optimizer.apply_gradients(zip(tape.gradient(loss, v), v))
"""


def read(folder: Path, text: str | bytes, **others: str) -> ScriptReport:
    write(folder, {"train.py": text, **{f"{name}.py": other for name, other in others.items()}})
    return analyse(folder / "train.py")


@pytest.mark.parametrize(
    "text",
    [
        MANAGED,
        "import tensorflow as tf\nm = tf.keras.Sequential()\nm.fit(x)",
        "from tensorflow import keras\nkeras.Model().fit(x)",
        "from keras.models import Sequential\nSequential().fit(x)",
        "import keras\nclass Job:\n  def go(self): self.model.fit(self.x)",
        "import keras\ndef main(model): return model.fit(x)\n",
        "import keras\nclass M(keras.Model):\n  def fit(self, *a): return super().fit(*a)\nM().fit(x)",
        "from tensorflow.keras import layers, Model\nhistory = build().fit(x)",
        LOOP + "\nmodel.fit(x)",
    ],
)
def test_a_script_that_calls_fit_is_managed(tmp_path: Path, text: str) -> None:
    report = read(tmp_path, text)
    assert report.kind == "managed"
    assert report.problem is None
    assert report.mistakes == ()
    assert "fit" in [found.what for found in report.found]


def test_the_line_of_each_fit_is_reported(tmp_path: Path) -> None:
    report = read(tmp_path, MANAGED + "model.fit(x)\n")
    assert [(found.path, found.line, found.what) for found in report.found] == [
        ("train.py", 5, "fit"),
        ("train.py", 6, "fit"),
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (OWN, "MultiWorkerMirroredStrategy"),
        (
            "from tensorflow.distribute import MultiWorkerMirroredStrategy as S\nS()",
            "MultiWorkerMirroredStrategy",
        ),
        (
            "import tensorflow as tf\ns = tf.distribute.experimental.ParameterServerStrategy(r)",
            "ParameterServerStrategy",
        ),
        ("import tensorflow as tf\nwith tf.distribute.MirroredStrategy().scope(): pass", "MirroredStrategy"),
        ("import tensorflow.compat.v2 as tf\ntf.distribute.TPUStrategy(r)", "TPUStrategy"),
        ("import tensorflow as tf\nkinds = {'m': tf.distribute.MirroredStrategy}", "MirroredStrategy"),
        ("import tensorflow as tf\nf(tf.distribute.OneDeviceStrategy)", "OneDeviceStrategy"),
        ("import tensorflow as tf\nclass Mine(tf.distribute.Strategy): pass", "Mine"),
        (
            "import tensorflow as tf\nclass A(B): pass\nclass B(tf.distribute.StrategyExtended): pass",
            "B",
        ),
    ],
)
def test_a_script_that_builds_a_strategy_has_its_own(tmp_path: Path, text: str, named: str) -> None:
    report = read(tmp_path, text)
    assert report.kind == "own"
    assert named in report.strategies
    assert report.problem is None


@pytest.mark.parametrize(
    "text",
    [
        "isinstance(s, tf.distribute.MirroredStrategy)",
        "def f(s: tf.distribute.MirroredStrategy | None = None) -> tf.distribute.MirroredStrategy: pass",
        "s: tf.distribute.MirroredStrategy",
        "if type(s) == tf.distribute.MirroredStrategy: pass",
        "s = tf.distribute.get_strategy()",
        "from tensorflow.distribute import MirroredStrategy",
        "'MirroredStrategy()'  # MirroredStrategy()",
        "class Strategy: pass\nclass Mine(Strategy): pass",
    ],
)
def test_naming_a_strategy_is_not_building_one(tmp_path: Path, text: str) -> None:
    report = read(tmp_path, "import tensorflow as tf\nmodel.fit(x)\n" + text)
    assert report.kind == "managed"
    assert report.strategies == ()


def test_a_strategy_or_a_fit_in_a_module_beside_the_script_is_found(tmp_path: Path) -> None:
    report = read(
        tmp_path,
        "import cluster, trainer",
        cluster="from deeper import make",
        deeper="import tensorflow as tf\ndef make():\n    return tf.distribute.MultiWorkerMirroredStrategy()",
        trainer="import keras\ndef go(m): m.fit(x)",
        unrelated="import tensorflow as tf\ntf.distribute.TPUStrategy()",
    )
    assert report.kind == "own"
    assert report.strategies == ("MultiWorkerMirroredStrategy",)
    assert [(found.path, found.line) for found in report.found] == [("deeper.py", 3), ("trainer.py", 2)]
    assert report.modules == ("train.py", "cluster.py", "trainer.py", "deeper.py")
    (tmp_path / "deeper.py").write_text("make = None")
    assert analyse(tmp_path / "train.py").kind == "managed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LOOP, "loop of its own (GradientTape, line 4)"),
        ("print('hello')", "imports neither Keras nor TensorFlow"),
        ("from sklearn.svm import SVC\nSVC().fit(x, y)", "imports neither Keras nor TensorFlow"),
        (
            "import keras\nfrom sklearn.preprocessing import StandardScaler\ns = StandardScaler()\ns.fit(x)",
            "calls no model's fit",
        ),
        (
            "import keras, sklearn.svm as svm\nclf = svm.SVC()\nbest = clf\nbest.fit(x)",
            "calls no model's fit",
        ),
        (
            "import tensorflow as tf\nclass Trainer:\n  def fit(self):\n    with tf.GradientTape(): pass\n"
            "    self.adam.apply(g)\nTrainer().fit()",
            "loop of its own (GradientTape, line 4)",
        ),
        (
            "from tensorflow.keras.preprocessing.image import ImageDataGenerator\n"
            "g = ImageDataGenerator()\ng.fit(x)",
            "calls no model's fit",
        ),
        ("import keras\nprint(keras.__version__)", "calls no model's fit"),
    ],
)
def test_a_script_that_shares_nothing_is_reported(tmp_path: Path, text: str, said: str) -> None:
    report = read(tmp_path, text)
    assert report.kind == "neither"
    assert report.problem is not None
    assert said in report.problem.what
    assert "share nothing" in report.problem.what
    assert report.problem.fix


def test_a_broken_module_is_a_mistake_and_the_script_is_still_read(tmp_path: Path) -> None:
    report = read(tmp_path, "import helper\n" + MANAGED, helper="def f(:\n")
    assert report.kind == "managed"
    assert [(mistake.code, mistake.path) for mistake in report.mistakes] == [("script-syntax", "helper.py")]
    assert "helper.py has a syntax error in line 1" in report.mistakes[0].problem.what


def test_a_report_survives_a_round_trip(tmp_path: Path) -> None:
    report = read(tmp_path, OWN)
    assert wire.from_json(wire.to_json(report), ScriptReport) == report


def test_nothing_of_the_script_runs(tmp_path: Path) -> None:
    read(tmp_path, f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(3)\n")
    assert not (tmp_path / "ran").exists()


def test_a_byte_order_mark_and_a_declared_encoding_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, b"\xef\xbb\xbf" + MANAGED.encode()).kind == "managed"
    assert read(tmp_path, b"# coding: latin-1\n# \xe4\n" + MANAGED.encode()).kind == "managed"


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", '"""A docstring."""\n', "pass\n..."])
def test_an_empty_script_is_reported(tmp_path: Path, text: str) -> None:
    with pytest.raises(TandemError, match=r"train\.py is empty") as caught:
        read(tmp_path, text)
    assert caught.value.code == "script-empty"


def test_an_invalid_script_is_reported(tmp_path: Path) -> None:
    write(tmp_path, {"a.ipynb": "{}", "b.txt": "x", "c.py": "x = (", "d": "x"})
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    codes = {}
    for name in ("a.ipynb", "b.txt", "c.py", "d", "pipe.py", "none.py", "", "none.txt"):
        with pytest.raises(TandemError) as caught:
            analyse(tmp_path / name)
        assert caught.value.fix
        codes[name] = caught.value.code
    assert codes == {
        "a.ipynb": "script-not-python",
        "b.txt": "script-not-python",
        "c.py": "script-syntax",
        "d": "script-not-python",
        "pipe.py": "script-unreadable",
        "none.py": "script-missing",
        "": "script-is-folder",
        "none.txt": "script-missing",
    }
    for name in ("loop.py", "a\0.py"):
        with pytest.raises(TandemError, match="cannot be read"):
            analyse(tmp_path / name)


HAND = """
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
for batch in data:
    strategy.run(step, args=(batch,))
"""


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (OWN, True),
        (OWN + "job.run()\n", True),
        ("import tensorflow as tf\nclass M(tf.keras.Model):\n  def train_step(self, d):\n"
         "    with tf.GradientTape() as t: pass\n" + OWN, True),
        (OWN.replace("MultiWorkerMirrored", "Mirrored"), True),
        (OWN.replace("MultiWorkerMirrored", "OneDevice"), False),
        (OWN.replace("MultiWorkerMirroredStrategy()", "MirroredStrategy() if several else "
                     "tf.distribute.OneDeviceStrategy('GPU:0')"), True),
        (OWN + "other = tf.distribute.ParameterServerStrategy(resolver)\n", False),
        ("import tensorflow as tf\nclass Mine(tf.distribute.Strategy): pass\n"
         "strategy = Mine()\n" + MANAGED, False),
        (OWN.replace("model.fit(x)", "print(1)"), False),
        (HAND, False),
        ("import tensorflow as tf\nclass Mine(tf.distribute.MultiWorkerMirroredStrategy): pass\n"
         "strategy = Mine()\n" + MANAGED, True),
        (OWN + "strategy.run(step)\n", False),
        (OWN + "def f(strategy):\n  strategy.run(step)\n", False),
        (OWN + "class A:\n  def f(self):\n    self.strategy.run(self.step)\n", False),
        (MANAGED, False),
    ],
)  # fmt: skip
def test_fit_in_the_scripts_own_strategy_is_distinguished_from_a_custom_loop(
    tmp_path: Path, text: str, fits: bool
) -> None:
    assert read(tmp_path, text).fits_in_own_strategy is fits


@pytest.mark.parametrize(
    ("text", "loops"),
    [
        (HAND, True),
        (HAND.replace("MultiWorkerMirroredStrategy()", "experimental.MultiWorkerMirroredStrategy(\n"
                      "  communication=tf.distribute.experimental.CollectiveCommunication.RING)"), True),
        (HAND + "model.fit(x)\n", True),
        (HAND + "tf.distribute.ParameterServerStrategy(resolver)\n", False),
        ("import tensorflow as tf\nclass Mine(tf.distribute.MultiWorkerMirroredStrategy): pass\n"
         "Mine().run(step)\n", False),
        (HAND.replace("MultiWorkerMirrored", "Mirrored"), True),
        (HAND.replace("MultiWorkerMirrored", "Mirrored") + "model.fit(x)\n", True),
        (HAND.replace("MultiWorkerMirrored", "Mirrored") + "tf.distribute.OneDeviceStrategy('a')\n", True),
        (HAND + "tf.distribute.MirroredStrategy()\n", True),
        ("import tensorflow as tf\nclass Mine(tf.distribute.MirroredStrategy): pass\n"
         "class Ours(Mine): pass\nOurs().run(step)\n", True),
        (OWN.replace("MultiWorkerMirrored", "Mirrored"), False),
        (MANAGED, False),
    ],
)  # fmt: skip
def test_a_custom_loop_in_a_mirrored_strategy_needs_no_tensorflow_cluster(
    tmp_path: Path, text: str, loops: bool
) -> None:
    assert read(tmp_path, text).loops_in_mirrored_strategy is loops


LOOKS = """
import tensorflow as tf
model = tf.keras.models.load_model("trained.keras")
with tf.GradientTape() as tape:
    tape.watch(image)
    score = model(image)[:, 0]
saliency = tape.gradient(score, image)
"""


def test_a_script_that_only_inspects_a_trained_model_has_no_training_loop(tmp_path: Path) -> None:
    report = read(tmp_path, LOOKS)
    assert report.kind == "neither"
    assert [found.what for found in report.found] == []
    assert report.problem is not None and "loop" not in report.problem.what
    assert "calls no model's fit" in report.problem.what
    in_a_module = read(tmp_path, "import mine\n" + LOOKS, mine="def go(o, g, v):\n    o.apply(g, v)\n")
    assert [found.what for found in in_a_module.found] == ["GradientTape"]


def test_a_loop_of_batches_is_shared_and_reported_in_advance(tmp_path: Path) -> None:
    report = read(
        tmp_path, "import keras, mine\nmine.go()", mine="def go(m, d):\n  for b in d: m.train_on_batch(b)"
    )
    assert report.kind == "managed" and report.problem is None
    [unkept] = report.mistakes
    assert (unkept.code, unkept.path, unkept.line) == ("batches-unkept", "mine.py", 2)
    assert "no checkpoints" in unkept.what and "starts over" in unkept.what
    fits = read(tmp_path, "import keras\nkeras.Model().fit(x)\nkeras.Model().train_on_batch(x)")
    assert [each.line for each in fits.mistakes] == [3]
    assert read(tmp_path, "import torch\nm.train_on_batch(x)").kind == "neither"
