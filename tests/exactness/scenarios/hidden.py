"""Hidden from the check of the first batch: changing lengths, eager steps, random draws in a loop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.patterns import Centred, Worked, applied
from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table

_WORDS = [f"w{number}" for number in range(12)]


def texts() -> tuple[Any, Any]:
    """Some words per row. In the first batch every part has a row with the most words; later perhaps none
    has."""
    x, y = table(1200)
    random = np.random.RandomState(3)
    lengths = random.randint(1, 8, len(x))
    lengths[:BATCH] = 7
    said = [" ".join(random.choice(_WORDS, length)) for length in lengths]
    return tf.constant(said)[:, None], y


def of_words(*after: Any, mask_zero: bool = False) -> Outcome:
    """A text model whose rows are padded to the longest of a batch, inside a step."""
    x, y = texts()
    words = layers.TextVectorization(vocabulary=_WORDS)
    embedding = layers.Embedding(len(_WORDS) + 2, 4, mask_zero=mask_zero)
    model = keras.Sequential([keras.Input((1,), dtype="string"), words, embedding, *after, layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)
    history = model.fit(data, verbose=0)
    return Outcome([model], history.history)


@scenario(told="computes each batch whole")
def padded_to_the_longest(folder: Path) -> Outcome:
    """The mean over words includes the padding."""
    return of_words(layers.GlobalAveragePooling1D())


@scenario()
def padded_and_masked(folder: Path) -> Outcome:
    return of_words(layers.GlobalAveragePooling1D(), mask_zero=True)


class Places(layers.Layer):
    """Adds to each word a learned embedding of its position."""

    def __init__(self) -> None:
        super().__init__()
        self.supports_masking = True
        self.table = layers.Embedding(10, 4)

    def call(self, x: Any) -> Any:
        return x + self.table(tf.range(tf.shape(x)[1]))


@scenario(told="computes each batch whole")
def places_of_padded_words(folder: Path) -> Outcome:
    """Members would have tables of different lengths."""
    return of_words(Places(), layers.GlobalAveragePooling1D(), mask_zero=True)


@scenario()
def drawn_in_a_loop(folder: Path) -> Outcome:
    class Noisy(Worked):
        def train_step(self, data: Any) -> Any:
            x, y = data

            def drawn(column: Any) -> Any:
                return tf.random.normal([], stddev=0.1, seed=4) + 0.0 * column

            noise = tf.map_fn(drawn, x[0], parallel_iterations=1)
            return super().train_step((x + noise, y))

    x, y = table(1200)
    model = Noisy(applied)
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(told="computes each batch whole")
def loss_in_a_loop(folder: Path) -> Outcome:
    """It cannot be computed separately."""

    class Repeated(keras.Sequential):
        def compute_loss(self, *given: Any, **named: Any) -> Any:
            def once(at: Any, total: Any) -> Any:
                return at + 1, total + super(Repeated, self).compute_loss(*given, **named) / 3.0

            return tf.while_loop(lambda at, _: at < 3, once, (0, 0.0))[1]

    x, y = table(1200)
    model = Repeated([keras.Input((FEATURES,)), layers.Dense(6, "tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def sums_over_many_pixels(folder: Path) -> Outcome:
    """An audit must not report their rounding: the gradient of a bias adds up 262,144 numbers."""
    random = np.random.default_rng(0)
    x, y = random.random((512, 32, 32, 3), np.float32), random.integers(0, 10, 512)
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            layers.Conv2D(16, 3, padding="same", activation="tanh"),
            layers.Conv2D(16, 3, padding="same", activation="tanh"),
            layers.AveragePooling2D(2),
            layers.Conv2D(16, 3, padding="same", activation="tanh"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy")
    history = model.fit(x, y, batch_size=256, shuffle=False, verbose=0)
    return Outcome([model], history.history)


class Blurred(layers.Layer):
    """Adds noise from its own generator."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = tf.random.Generator.from_seed(6)

    def call(self, x: Any, training: bool = False) -> Any:
        return x + 0.1 * self.generator.normal(tf.shape(x)) if training else x


@scenario()
def drawn_by_a_generator(folder: Path) -> Outcome:
    x, y = table(1200)
    model = keras.Sequential([keras.Input((FEATURES,)), Blurred(), layers.Dense(6, "tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


def eagerly(loss: Any, rate: float = 0.05) -> Outcome:
    x, y = table(BATCH * 5 + 9)
    model = dense()
    model.compile(keras.optimizers.SGD(rate), loss=loss, run_eagerly=True)
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {name: np.divide(value, 64) for name, value in history.history.items()})


@scenario(told="computes each batch whole")
def loss_of_the_batch_eagerly(folder: Path) -> Outcome:
    return eagerly(lambda true, seen: ops.sqrt(ops.mean(ops.square(true - seen))))


@scenario(told="computes each batch whole")
def sum_eagerly(folder: Path) -> Outcome:
    return eagerly(lambda true, seen: ops.sum(ops.square(true - seen)), rate=0.001)


@scenario(told="computes each batch whole")
def own_step_eagerly(folder: Path) -> Outcome:
    """Half of each batch is used, and the script counts its steps."""
    counted: list[int] = []

    class Half(Worked):
        def train_step(self, data: Any) -> Any:
            counted.append(len(data[0]))
            return super().train_step(tuple(part[: len(part) // 2] for part in data))

    x, y = table(BATCH * 5)
    model = Half(applied)
    model.compile(keras.optimizers.SGD(0.05), run_eagerly=True)
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], {**history.history, "counted": counted})


class Keeping(layers.Layer):
    """Updates one variable from its rows by ``keep``."""

    def __init__(self, keep: Any, shape: tuple[int, ...] = (), dtype: str = "float32") -> None:
        super().__init__()
        self.keep = keep
        self.kept = self.add_weight(shape=shape, dtype=dtype, initializer="zeros", trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            self.kept.assign(self.keep(self.kept, x))
        return x


def keeping(layer: Keeping) -> Outcome:
    x, y = table()
    model = keras.Sequential([keras.Input((FEATURES,)), layer, layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(told="computes each batch whole")
def rows_that_are_counted(folder: Path) -> Outcome:
    return keeping(Keeping(lambda kept, x: kept + ops.shape(x)[0], dtype="int32"))


@scenario(told="computes each batch whole")
def largest_that_is_kept(folder: Path) -> Outcome:
    return keeping(Keeping(lambda kept, x: ops.maximum(kept, ops.max(x))))


@scenario(told="computes each batch whole")
def mean_that_moves(folder: Path) -> Outcome:
    return keeping(Keeping(lambda kept, x: 0.9 * kept + 0.1 * ops.mean(x)))


@scenario(told="computes each batch whole")
def queue_of_rows(folder: Path) -> Outcome:
    return keeping(Keeping(lambda kept, x: ops.concatenate([x, kept])[:100], shape=(100, FEATURES)))


class Adversarial(Worked):
    """Trains on rows moved along the gradient of the batch's loss by its inputs."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = self.loss_of(y, self(x, training=True))
        return super().train_step((x + 5.0 * tape.gradient(loss, x), y))


@scenario(told="computes each batch whole")
def gradient_by_the_inputs(folder: Path) -> Outcome:
    """It is of a mean over the member's own rows."""
    x, y = table(1200)
    model = Adversarial(applied)
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(told="computes each batch whole")
def too_much_to_gather(folder: Path) -> Outcome:
    """2 MiB of predictions and targets a batch."""
    x, y = table(600)
    model = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(4096, "sigmoid")])
    model.compile(keras.optimizers.SGD(0.1), loss=keras.losses.Dice())
    target = np.repeat(y > 0, 4096, axis=1).astype("float32")
    history = model.fit(x, target, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(told="computes each batch whole")
def loss_without_reduction(folder: Path) -> Outcome:
    """One value per row; Keras' step differentiates their sum."""
    x, y = table(1200)
    model = dense()
    model.compile(keras.optimizers.SGD(0.001), loss=keras.losses.MeanSquaredError(reduction=None))
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


class Shrinking(layers.Layer):
    """Adds a small sum over rows to the loss; its own value is zero."""

    def call(self, x: Any) -> Any:
        self.add_loss(1e-6 * ops.sum(ops.square(x)))
        return 0.0 * x


@scenario()
def small_sum_that_is_added(folder: Path) -> Outcome:
    """Adam's step is as large for a small loss as for a large one."""
    x, y = table(1200)
    inputs = keras.Input((FEATURES,))
    added = layers.Add()([layers.Dense(1)(inputs), Shrinking()(layers.Dense(1)(inputs))])
    model = keras.Model(inputs, added)
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario(told="computes each batch whole")
def predicted_as_a_whole(folder: Path) -> Outcome:
    """By a model that was never trained here, so that no loss has shown how it treats a batch."""
    x, _ = table(200)
    model = keras.Sequential([keras.Input((FEATURES,)), Centred(), layers.Dense(2)])
    return Outcome([model], {"predicted": model.predict(x, batch_size=50, verbose=0)})


class Dropping(layers.Dropout):
    """Dropout that stays on, to estimate a model's uncertainty."""

    def call(self, x: Any, training: bool = False) -> Any:
        return super().call(x, training=True)


@scenario(told="computes each batch whole")
def predicted_at_random(folder: Path) -> Outcome:
    x, _ = table(200)
    inputs = keras.Input((FEATURES,))
    dropped = Dropping(0.5, seed=3)(layers.Dense(20)(inputs))
    model = keras.Model(inputs, layers.Dense(2)(dropped))
    predicted = [model.predict(x, batch_size=50, verbose=0) for _ in range(2)]
    return Outcome([model], {"predicted": np.stack(predicted)})


class Halved(layers.Layer):
    """Counts how often the largest number of the batch must be halved to be small."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds = self.add_weight(shape=(), initializer="zeros", trainable=False, name="rounds")

    def call(self, x: Any) -> Any:
        def once(largest: Any) -> Any:
            self.rounds.assign_add(1.0)
            return (largest / 2.0,)

        tf.while_loop(lambda largest: largest > 0.1, once, (tf.reduce_max(x),))
        return x


@scenario(told="computes each batch whole")
def rounds_that_follow_from_the_rows(folder: Path) -> Outcome:
    """The chief has each batch's largest number, and counts as one process does; the other one does not."""
    x, y = table(1280)
    x[::BATCH] *= 20.0
    model = keras.Sequential([keras.Input((FEATURES,)), Halved(), layers.Dense(6, "tanh"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0)
    return Outcome([model], history.history)


@scenario(told="computes each batch whole")
def steps_until_the_loss_is_low(folder: Path) -> Outcome:
    class Patient(Worked):
        def train_step(self, data: Any) -> Any:
            x, y = data

            def once(at: Any, _: Any) -> Any:
                with tf.GradientTape() as tape:
                    loss = self.loss_of(y, self(x, training=True))
                weights = self.trainable_variables
                self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
                return at + 1, loss

            return {"loss": tf.while_loop(lambda at, loss: (loss > 0.1) & (at < 10), once, (0, 1.0))[1]}

    x, y = table(1280)
    model = Patient(applied)
    model.compile(keras.optimizers.SGD(0.05))
    model(x[:1])
    model.optimizer.build(model.trainable_variables)
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)
