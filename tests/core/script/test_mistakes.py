from pathlib import Path

import pytest

from core.script.analysis import analyse
from core.script.syntax import Mistake
from tests.core.project.making import write

HEAD = """import json, os, sys
import tensorflow as tf
"""
SCOPE = """
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    model = tf.keras.Sequential()
model.fit(x)
"""


def mistakes(folder: Path, text: str) -> list[Mistake]:
    write(folder, {"train.py": text})
    report = analyse(folder / "train.py")
    assert report.kind == "own"
    assert all(mistake.fix for mistake in report.mistakes)
    return list(report.mistakes)


def codes(folder: Path, text: str) -> list[str]:
    return [mistake.code for mistake in mistakes(folder, text)]


def test_a_sound_script_has_no_mistakes(tmp_path: Path) -> None:
    assert mistakes(tmp_path, HEAD + SCOPE) == []


@pytest.mark.parametrize(
    "value",
    ["str(config)", "repr(config)", "f'{config}'", "{'cluster': {}}", "text"],
)
def test_tf_config_that_is_not_json(tmp_path: Path, value: str) -> None:
    text = HEAD + f"text = str(config)\nos.environ['TF_CONFIG'] = {value}\n" + SCOPE
    found = mistakes(tmp_path, text)
    assert "tf-config-not-json" in [mistake.code for mistake in found]
    assert found[0].line == 4
    assert found[0].problem.what.startswith("train.py, line 4: TF_CONFIG")
    assert "json.dumps" in found[0].fix


@pytest.mark.parametrize(
    ("write_it", "address"),
    [
        ("os.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': ['localhost:12345']}})", "localhost"),
        ("os.environ['TF_CONFIG'] = json.dumps(c)", "192.168.1.10:2222"),
        ("os.environ.update({'TF_CONFIG': json.dumps(c)})", "192.168.1.10:2222"),
        ("os.environ.update(TF_CONFIG=json.dumps(c))", "192.168.1.10:2222"),
        ("os.putenv('TF_CONFIG', json.dumps(c))", "192.168.1.10:2222"),
        (
            "from os import environ as e\ne['TF_CONFIG'] = '{\"worker\": [\"laptop.local:2222\"]}'",
            "laptop.local:2222",
        ),
        ("os.environ['TF_CONFIG'] = json.dumps({'w': [f'127.0.0.1:{port}']})", "127.0.0.1"),
    ],
)
def test_tf_config_with_fixed_addresses(tmp_path: Path, write_it: str, address: str) -> None:
    text = HEAD + "hosts = ['192.168.1.10:2222']\nc = {'cluster': {'worker': hosts}}\n" + write_it + SCOPE
    found = mistakes(tmp_path, text)
    assert [mistake.code for mistake in found] == ["tf-config-fixed-address"]
    assert address in found[0].what


def test_tf_config_overwritten_without_an_address(tmp_path: Path) -> None:
    assert codes(tmp_path, HEAD + "os.environ['TF_CONFIG'] = json.dumps(build(sys.argv))" + SCOPE) == [
        "tf-config-overwritten"
    ]


@pytest.mark.parametrize(
    "line", ["os.environ.pop('TF_CONFIG', None)", "del os.environ['TF_CONFIG']", "os.unsetenv('TF_CONFIG')"]
)
def test_tf_config_removed(tmp_path: Path, line: str) -> None:
    assert codes(tmp_path, HEAD + line + SCOPE) == ["tf-config-removed"]


@pytest.mark.parametrize(
    "lines",
    [
        "if 'TF_CONFIG' not in os.environ:\n    os.environ['TF_CONFIG'] = str({'w': 'localhost:1234'})",
        "if os.environ.get('TF_CONFIG') is None:\n    os.environ['TF_CONFIG'] = json.dumps('localhost:1')",
        "if 'TF_CONFIG' in os.environ:\n    pass\nelse:\n    os.environ['TF_CONFIG'] = 'localhost:1234'",
        "if not os.getenv('TF_CONFIG'):\n    os.environ['TF_CONFIG'] = 'localhost:1234'",
        "os.environ.setdefault('TF_CONFIG', json.dumps({'w': 'localhost:1234'}))",
        "config = json.loads(os.environ['TF_CONFIG'])\nos.environ['TF_CONFIG'] = json.dumps(config)",
        "os.environ['OTHER'] = str({})",
        "task = json.loads(os.environ.get('TF_CONFIG', '{}'))",
    ],
)
def test_scripts_that_leave_tandems_tf_config_alone(tmp_path: Path, lines: str) -> None:
    assert mistakes(tmp_path, HEAD + lines + SCOPE) == []


@pytest.mark.parametrize(
    "call",
    [
        "tf.distribute.MirroredStrategy(cluster_resolver=r)",
        "tf.distribute.MirroredStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())",
        "tf.distribute.MirroredStrategy(resolver)",
    ],
)
def test_mirrored_strategy_with_a_resolver(tmp_path: Path, call: str) -> None:
    text = HEAD + "resolver = make()\n" + SCOPE.replace("tf.distribute.MultiWorkerMirroredStrategy()", call)
    assert codes(tmp_path, text) == ["mirrored-with-resolver"]


def test_mirrored_strategy_means_all_laptops_and_is_no_mistake(tmp_path: Path) -> None:
    text = HEAD + SCOPE.replace("MultiWorkerMirroredStrategy()", "MirroredStrategy(['GPU:0', 'GPU:1'])")
    assert mistakes(tmp_path, text) == []
    assert analyse(tmp_path / "train.py").mirrored == ("MirroredStrategy",)


def test_mirrored_strategy_as_a_fallback_is_fine(tmp_path: Path) -> None:
    text = HEAD + "if solo:\n    strategy = tf.distribute.MirroredStrategy()\n" + SCOPE
    assert mistakes(tmp_path, text) == []


def test_a_strategy_whose_scope_is_never_entered(tmp_path: Path) -> None:
    text = HEAD + "strategy = tf.distribute.MultiWorkerMirroredStrategy()\nmodel.fit(x)\n"
    found = mistakes(tmp_path, text)
    assert [(mistake.code, mistake.line) for mistake in found] == [("strategy-without-scope", 3)]


STEP = """
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy({reduction})
def step(x, y):
    with tf.GradientTape() as tape:
        loss = {loss}
    optimizer.apply_gradients(zip(tape.gradient(loss, v), v))
    return loss
def train(x, y):
    return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(step, args=(x, y)), axis=None)
"""


@pytest.mark.parametrize(
    ("reduction", "loss"),
    [
        ("", "loss_fn(y, model(x))"),
        ("reduction='sum'", "loss_fn(y, model(x))"),
        ("reduction=tf.keras.losses.Reduction.NONE", "tf.reduce_mean(loss_fn(y, model(x)))"),
    ],
)
def test_a_loss_that_is_not_divided_by_the_global_batch(tmp_path: Path, reduction: str, loss: str) -> None:
    found = mistakes(tmp_path, HEAD + STEP.format(reduction=reduction, loss=loss))
    assert [(mistake.code, mistake.line) for mistake in found] == [("loss-not-scaled", 9)]
    assert "compute_average_loss" in found[0].fix


@pytest.mark.parametrize(
    "loss",
    [
        "tf.nn.compute_average_loss(loss_fn(y, model(x)), global_batch_size=64)",
        "tf.reduce_sum(loss_fn(y, model(x))) / GLOBAL_BATCH_SIZE",
        "loss_fn(y, model(x)) * (1.0 / strategy.num_replicas_in_sync)",
    ],
)
def test_a_scaled_loss_is_fine(tmp_path: Path, loss: str) -> None:
    assert mistakes(tmp_path, HEAD + STEP.format(reduction="reduction=None", loss=loss)) == []


def test_asynchronous_steps_need_no_scaling(tmp_path: Path) -> None:
    text = STEP.format(reduction="", loss="loss_fn(y, model(x))")
    text = text.replace("MultiWorkerMirroredStrategy()", "ParameterServerStrategy(resolver)")
    assert mistakes(tmp_path, HEAD + text) == []


def test_the_widespread_two_laptop_recipe(tmp_path: Path) -> None:
    """As in tutorials: four mistakes, each with its line."""
    text = """import os
import tensorflow as tf

def create_cluster_resolver():
    cluster_spec = {'chief': [f"ip_address_machine_1:2222"], 'worker': [f"ip_address_machine_2:2222"]}
    task_type = os.environ.get("TF_CONFIG_TASK_TYPE")
    os.environ['TF_CONFIG'] = str({"cluster": cluster_spec, "task": {"type": task_type, "index": 0}})
    return tf.distribute.cluster_resolver.TFConfigClusterResolver()

def train_model(strategy, distributed_dataset, num_epochs):
    model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy()

    @tf.function
    def distributed_train_step(inputs, labels):
        def train_step(inputs, labels):
            with tf.GradientTape() as tape:
                predictions = model(inputs)
                loss = loss_fn(labels, predictions)
            gradients = tape.gradient(loss, model.trainable_variables)
            return loss
        per_replica_losses = strategy.run(train_step, args=(inputs, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)

resolver = create_cluster_resolver()
strategy = tf.distribute.MirroredStrategy(cluster_resolver=resolver)
per_worker = 64 // 2
train_model(strategy, None, num_epochs=2)
"""
    found = mistakes(tmp_path, text)
    assert [(mistake.code, mistake.line) for mistake in found] == [
        ("tf-config-not-json", 7),
        ("tf-config-fixed-address", 7),
        ("mirrored-with-resolver", 26),
        ("loss-not-scaled", 19),
        ("strategy-without-scope", 26),
    ]
    assert "ip_address_machine_" in found[1].what


def test_a_managed_script_gets_no_warning_about_its_tf_config(tmp_path: Path) -> None:
    write(tmp_path, {"train.py": HEAD + "os.environ['TF_CONFIG'] = str({})\nmodel.fit(x)\n"})
    assert analyse(tmp_path / "train.py").mistakes == ()


TPU = "resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu='')\n"
BUILT = "strategy = tf.distribute.TPUStrategy(resolver)\nwith strategy.scope(): model = build()\n"


def test_a_tpu_that_laptops_do_not_have(tmp_path: Path) -> None:
    (found,) = mistakes(tmp_path, HEAD + TPU + BUILT)
    assert (found.code, found.line) == ("tpu-needed", HEAD.count("\n") + 1)
    assert "TPUClusterResolver needs a TPU" in found.what


def test_a_tpu_that_is_only_tried_is_fine(tmp_path: Path) -> None:
    tried = f"try:\n    {TPU}except ValueError:\n    resolver = None\n"
    assert mistakes(tmp_path, HEAD + tried + BUILT) == []


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("import tf_keras", "legacy-keras"),
        ("from tf_keras import layers", "legacy-keras"),
        ("os.environ['TF_USE_LEGACY_KERAS'] = '1'", "legacy-keras"),
        ("epochs = int(input('How many epochs? '))", "asks-for-input"),
        ("import keras_tuner as kt", "keras-tuner"),
        ("from kerastuner.tuners import Hyperband", "keras-tuner"),
        ("import keras", ""),
        ("model.input(3)", ""),
    ],
)
def test_mistakes_possible_in_any_script_are_reported_with_their_line(
    tmp_path: Path, line: str, code: str
) -> None:
    write(tmp_path, {"train.py": f"import os\nimport keras\n{line}\nmodel = keras.Model()\nmodel.fit(x)\n"})
    found = analyse(tmp_path / "train.py").mistakes
    assert [(each.code, each.line) for each in found] == ([(code, 3)] if code else [])
