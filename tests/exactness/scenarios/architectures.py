"""Model types: sequential, functional with several inputs and outputs, dicts, subclasses, custom steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.scenarios.losses import crossentropy, sequences, weights
from tests.exactness.scenarios.optimizers import dense
from tests.exactness.scenarios.registry import BATCH, CLASSES, FEATURES, Outcome, classes, scenario, table


@scenario(core=True)
def several_inputs_and_outputs(folder: Path) -> Outcome:
    x, y = table()
    _, kind = classes()
    left, right = keras.Input((4,), name="left"), keras.Input((4,), name="right")
    joined = layers.Concatenate()([layers.Dense(5, activation="tanh")(left), layers.Dense(5)(right)])
    value, label = layers.Dense(1, name="value")(joined), layers.Dense(CLASSES, name="label")(joined)
    model = keras.Model([left, right], [value, label])
    model.compile(
        keras.optimizers.SGD(0.05),
        loss=["mse", crossentropy()],
        loss_weights=[1.0, 0.3],
        metrics=[["mae"], ["accuracy"]],
    )
    history = model.fit([x[:, :4], x[:, 4:]], [y, kind], batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def dict_model(folder: Path) -> Outcome:
    x, y = table()
    _, kind = classes()
    inputs = {"left": keras.Input((4,), name="left"), "right": keras.Input((4,), name="right")}
    joined = layers.Concatenate()([inputs["left"], inputs["right"]])
    outputs = {"value": layers.Dense(1)(joined), "label": layers.Dense(CLASSES)(joined)}
    model = keras.Model(inputs, outputs)
    model.compile(
        keras.optimizers.Adam(0.01),
        loss={"value": "mse", "label": crossentropy()},
        metrics={"label": ["accuracy"]},
    )
    data = {"left": x[:, :4], "right": x[:, 4:]}
    history = model.fit(
        data,
        {"value": y, "label": kind},
        sample_weight={"value": weights(), "label": weights()[::-1].copy()},
        batch_size=BATCH,
        verbose=0,
    )
    predicted = model.predict(data, batch_size=50, verbose=0)
    values = {f"predicted_{name}": array for name, array in predicted.items()}
    return Outcome([model], {**history.history, **values})


class Own(keras.Model):
    """A subclassed model, built at its first batch."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = layers.Dense(6, activation="tanh")
        self.outer = layers.Dense(1)

    def call(self, x: Any, training: bool = False) -> Any:
        return self.outer(self.inner(x))


@scenario(core=True)
def subclassed_unbuilt(folder: Path) -> Outcome:
    x, y = table()
    model = Own()
    model.compile(keras.optimizers.Adam(0.01), loss="mse", metrics=["mae"])
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


class OwnStep(Own):
    """A custom train_step around compute_loss."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        self._loss_tracker.update_state(loss, sample_weight=tf.shape(x)[0])
        for metric in self.metrics[1:]:
            metric.update_state(y, self(x))
        return {metric.name: metric.result() for metric in self.metrics}


@scenario()
def own_train_step(folder: Path) -> Outcome:
    x, y = table()
    model = OwnStep()
    model.compile(keras.optimizers.SGD(0.05, clipnorm=0.1), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


class PlainStep(Own):
    """A train_step without Keras' losses, as tutorials write it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = keras.metrics.Mean(name="seen")

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - self(x, training=True)))
            loss += 0.01 * tf.add_n([tf.nn.l2_loss(v) for v in self.trainable_variables])
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        self.seen.update_state(loss)
        return {"seen": self.seen.result(), "newest": loss}


@scenario(core=True)
def own_train_step_without_compute_loss(folder: Path) -> Outcome:
    x, y = table(1200)  # the last batch has 48 rows
    model = PlainStep()
    model.compile(keras.optimizers.SGD(0.05))
    history = model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)
    return Outcome([model], history.history)


class Adversaries(keras.Model):
    """Two networks, two optimizers, one train_step: a small GAN."""

    def __init__(self) -> None:
        super().__init__()
        self.maker = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(2)])
        self.critic = keras.Sequential([keras.Input((2,)), layers.Dense(4, "tanh"), layers.Dense(1)])
        self.maker_optimizer = keras.optimizers.SGD(0.02)
        self.critic_optimizer = keras.optimizers.Adam(0.01, clipnorm=0.2)
        self.judge = keras.losses.BinaryCrossentropy(from_logits=True)
        self.built = True

    def train_step(self, data: Any) -> Any:
        noise, real = data
        with tf.GradientTape(persistent=True) as tape:
            faked, true = self.critic(self.maker(noise)), self.critic(real)
            criticism = self.judge(tf.ones_like(true), true) + self.judge(tf.zeros_like(faked), faked)
            making = self.judge(tf.ones_like(faked), faked)
        critics, makers = self.critic.trainable_variables, self.maker.trainable_variables
        self.critic_optimizer.apply(tape.gradient(criticism, critics), critics)
        self.maker_optimizer.apply(tape.gradient(making, makers), makers)
        return {"criticism": criticism, "making": making}


@scenario(core=True)
def two_optimizers(folder: Path) -> Outcome:
    x, _ = table()
    model = Adversaries()
    model.compile()
    history = model.fit(x, x[:, :2] ** 2, batch_size=BATCH, epochs=1, verbose=0)
    return Outcome([model], history.history)


@scenario(core=True)
def embedding(folder: Path) -> Outcome:
    x, y = sequences()
    model = keras.Sequential(
        [keras.Input((6,), dtype="int32"), layers.Embedding(20, 4), layers.Flatten(), layers.Dense(1)]
    )
    model.compile(keras.optimizers.Adam(0.01), loss="mse")
    model.fit(x, y[:, :1].astype("float32"), batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario()
def embedding_clipped(folder: Path) -> Outcome:
    """Keras clips sparse gradients slice by slice; the slices arrive in the order of the rows."""
    x, y = sequences()
    model = keras.Sequential(
        [keras.Input((6,), dtype="int32"), layers.Embedding(20, 4), layers.Flatten(), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.3, clipnorm=0.05), loss="mse")
    model.fit(x, y[:, :1].astype("float32"), batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario()
def embedding_large(folder: Path) -> Outcome:
    """An embedding table: only the gradients of used rows travel."""
    x, y = sequences()
    model = keras.Sequential(
        [
            keras.Input((6,), dtype="int32"),
            layers.Embedding(300_000, 4, embeddings_initializer="zeros"),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.3), loss="mse")
    model.fit(x, y[:, :1].astype("float32"), batch_size=BATCH, verbose=0)
    table_of = model.layers[0].get_weights()[0][:20]
    return Outcome([], {"table": table_of, "dense": model.layers[-1].get_weights()[0]})


@scenario()
def large_and_small_tensors(folder: Path) -> Outcome:
    """A kernel that travels on its own, with two packs before and after it."""
    x, y = table()
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(1000, activation="tanh"),
            layers.Dense(1100, activation="tanh"),
            layers.Dense(900, activation="tanh"),
            layers.Dense(100, activation="tanh"),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


def normalised(synchronised: bool, rows: int = 1216 + 40) -> Outcome:
    x, y = table(rows)
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Dense(6),
            layers.BatchNormalization(synchronized=synchronised, momentum=0.9),
            layers.Activation("tanh"),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, validation_data=(x[:90], y[:90]), verbose=0)
    return Outcome([model], history.history)


@scenario(core=True)
def batch_normalisation_synchronised(folder: Path) -> Outcome:
    return normalised(True)


@scenario(core=True)
def batch_normalisation_plain(folder: Path) -> Outcome:
    return normalised(False)


@scenario()
def batch_normalisation_of_what_is_not_masked(folder: Path) -> Outcome:
    x, y = table(1216 + 40)
    words = (np.abs(x) * 4).astype("int32")
    model = keras.Sequential(
        [
            keras.Input((FEATURES,)),
            layers.Embedding(20, 3, mask_zero=True),
            layers.BatchNormalization(momentum=0.9),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(words, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def batch_normalisation_of_one_row(folder: Path) -> Outcome:
    """Some members have no rows in the last batch of each epoch."""
    return normalised(False, 3 * BATCH + 1)


@scenario(once=True, told="computes each batch whole")
def gradient_penalty_through_batch_normalisation(folder: Path) -> Outcome:
    x, y = table()

    class Critic(keras.Model):
        def train_step(self, data: Any) -> Any:
            seen, target = data
            with tf.GradientTape() as tape:
                with tf.GradientTape() as inner:
                    inner.watch(seen)
                    found = self(seen, training=True)
                slope = inner.gradient(found, seen)
                loss = tf.reduce_mean(tf.square(found - target)) + tf.reduce_mean(tf.square(slope))
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return {"loss": loss}

    inputs = keras.Input((FEATURES,))
    hidden = layers.Activation("tanh")(layers.BatchNormalization()(layers.Dense(6)(inputs)))
    model = Critic(inputs, layers.Dense(1)(hidden))
    model.compile(keras.optimizers.SGD(0.05))
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


class NormalisedInALoop(keras.layers.Layer):
    """Handles each time step separately, in a loop of the graph."""

    def __init__(self) -> None:
        super().__init__()
        self.normalise = layers.BatchNormalization()

    def build(self, shape: Any) -> None:
        self.normalise.build((None, shape[-1]))

    def call(self, seen: Any, training: bool = False) -> Any:
        return ops.map(lambda at: self.normalise(at, training=training), ops.transpose(seen, (1, 0, 2)))[0]


@scenario(once=True, told="computes each batch whole")
def batch_normalisation_in_a_loop(folder: Path) -> Outcome:
    x, y = table()
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Reshape((-1, 2)), NormalisedInALoop(), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario(core=True)
def dropout(folder: Path) -> Outcome:
    x, y = table()
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(30, "tanh"), layers.Dropout(0.5), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    history = model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model], history.history)


@scenario()
def convolution(folder: Path) -> Outcome:
    x, y = table()
    images = np.tile(x.reshape(-1, 2, 4, 1), (1, 4, 2, 1))
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, activation="tanh"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(images, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario()
def attention(folder: Path) -> Outcome:
    x, y = sequences()
    words = keras.Input((6,), dtype="int32")
    hidden = layers.Embedding(20, 6)(words)
    hidden = layers.LayerNormalization()(hidden + layers.MultiHeadAttention(2, 3)(hidden, hidden))
    model = keras.Model(words, layers.Dense(3)(hidden))
    model.compile(keras.optimizers.Adam(0.005), loss=crossentropy())
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario()
def normalisation_adapted(folder: Path) -> Outcome:
    x, y = table()
    scale = layers.Normalization()
    scale.adapt(3 * x + 1)
    model = keras.Sequential([keras.Input((FEATURES,)), scale, layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss="mse")
    model.fit(3 * x + 1, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario(exact=False, near=True, tolerance=2e-3, values_tolerance=2e-3)
def mixed_precision(folder: Path) -> Outcome:
    """The rounding of float16 sums depends on where they are cut: members are equal, one process is near."""
    x, y = table()
    policy = keras.mixed_precision.dtype_policy()
    keras.mixed_precision.set_dtype_policy("mixed_float16")
    try:
        model = dense()
        model.compile(keras.optimizers.SGD(0.05), loss="mse")
        history = model.fit(x, y, batch_size=BATCH, verbose=0)
    finally:
        keras.mixed_precision.set_dtype_policy(policy)
    return Outcome([model], history.history)


@scenario()
def wide_layer(folder: Path) -> Outcome:
    """A gradient so large that it travels on its own."""
    x, y = table(BATCH * 6)
    model = keras.Sequential(
        [keras.Input((FEATURES,)), layers.Dense(9000, activation="tanh"), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(0.0005), loss="mse")
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])


@scenario()
def nested_models(folder: Path) -> Outcome:
    x, y = table()
    inner = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(6, activation="tanh")])
    model = keras.Sequential([inner, layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.05), loss=lambda true, seen: ops.mean(ops.abs(true - seen), axis=-1))
    model.fit(x, y, batch_size=BATCH, verbose=0)
    return Outcome([model])
