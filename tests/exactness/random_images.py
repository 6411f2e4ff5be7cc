"""Models of small images combined at random from a seed: convolutions, pooling, batch normalisation and
augmentation, with a class per image or per pixel, and terms of the batch as a whole; some print, call Python,
draw by a generator that keeps its position, or run eagerly."""

from __future__ import annotations

import random
import sys
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.random_models import RandomModel, begun, of_batch
from tests.exactness.scenarios.audited import ClippedBack, Turned
from tests.exactness.scenarios.registry import BATCH

STEPS = 8
_SIDE, _CLASSES = 8, 3
_NOWHERE = -1
"""The class of a pixel, or of an image, that does not count."""

_CONVOLUTIONS: dict[str, Any] = {
    "plain": lambda drawn, **given: layers.Conv2D(drawn.choice([4, 6]), 3, padding="same", **given),
    "strided": lambda drawn, **given: layers.Conv2D(6, 3, strides=2, padding="same", **given),
    "dilated": lambda drawn, **given: layers.Conv2D(4, 3, dilation_rate=2, padding="same", **given),
    "grouped": lambda drawn, **given: layers.Conv2D(4, 3, groups=2, padding="same", **given),
    "depthwise": lambda drawn, **given: layers.DepthwiseConv2D(3, padding="same", **given),
    "separable": lambda drawn, **given: layers.SeparableConv2D(6, 3, padding="same", **given),
    "transposed": lambda drawn, **given: layers.Conv2DTranspose(4, 3, padding="same", **given),
}
_NORMS: dict[str, Any] = {
    "batch": lambda: layers.BatchNormalization(momentum=0.9),
    "centred": lambda: layers.BatchNormalization(momentum=0.8, scale=False),
    "groups": lambda: layers.GroupNormalization(2),
    "layer": lambda: layers.LayerNormalization(),
}
_AUGMENTATIONS: dict[str, Any] = {
    "flip": lambda seed: layers.RandomFlip(seed=seed),
    "shift": lambda seed: layers.RandomTranslation(0.2, 0.2, seed=seed),
    "turn": lambda seed: layers.RandomRotation(0.1, seed=seed),
    "zoom": lambda seed: layers.RandomZoom(0.2, seed=seed),
    "contrast": lambda seed: layers.RandomContrast(0.3, value_range=(-1, 1), seed=seed),
    "brightness": lambda seed: layers.RandomBrightness(0.2, value_range=(-1, 1), seed=seed),
    "erase": lambda seed: layers.RandomErasing(seed=seed, value_range=(-1, 1)),
    "noise": lambda seed: layers.GaussianNoise(0.1, seed=seed),
}
_POOLS: dict[str, Any] = {
    "mean": lambda: layers.AveragePooling2D(2, padding="same"),
    "largest": lambda: layers.MaxPooling2D(2, padding="same"),
}
_DROPS: dict[str, Any] = {
    "dropout": lambda seed: layers.Dropout(0.2, seed=seed),
    "channels": lambda seed: layers.SpatialDropout2D(0.2, seed=seed),
}


class Centred(layers.Layer):
    """From a step on, subtracts each channel's mean over the batch."""

    def __init__(self, start: int) -> None:
        super().__init__()
        self.start = start
        self.seen = self.add_weight(shape=(), dtype="int32", initializer="zeros", trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        if not training:
            return x
        self.seen.assign_add(1)
        return x - ops.cast(self.seen > self.start, x.dtype) * ops.mean(x, axis=(0, 1, 2))


class Printing(layers.Layer):
    """Prints a number of the batch at each step."""

    def call(self, x: Any) -> Any:
        tf.print("largest", tf.reduce_max(x), output_stream=sys.stderr)
        return x


class InPython(layers.Layer):
    """Bounds each number, in NumPy."""

    def call(self, x: Any) -> Any:
        found = tf.numpy_function(lambda numbers: np.clip(numbers, -1.0, 1.0), [x], x.dtype)
        return tf.ensure_shape(found, x.shape)


class Generated(layers.Layer):
    """Adds noise by a generator that keeps its position."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.generator = tf.random.Generator.from_seed(seed)

    def call(self, x: Any, training: bool = False) -> Any:
        return x + 0.1 * self.generator.normal(tf.shape(x)) if training else x


_EFFECTS: dict[str, Any] = {
    "prints": lambda seed: Printing(),
    "in Python": lambda seed: InPython(),
    "generator": Generated,
}


def images(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Smooth images in [-1, 1], a class per image, a class per pixel."""
    drawn = np.random.RandomState(seed)
    high, wide, shift = (drawn.uniform(0, 3, (rows, 1, 1, 1)) for _ in range(3))
    at = np.linspace(0, 2, _SIDE)
    wave = np.sin(high * at[:, None, None] + wide * at[None, :, None] + shift)
    x = (
        0.8 * np.concatenate([wave, wave**2], -1) + drawn.uniform(-0.2, 0.2, (rows, _SIDE, _SIDE, 2))
    ).astype("float32")
    kinds = np.digitize(high[:, 0, 0, 0], [1, 2]).astype("int32")
    return x, kinds, np.digitize(wave[..., 0], [-0.3, 0.3]).astype("int32")


def trained(seed: int, *, eager: bool) -> RandomModel:
    """Trains for `STEPS` steps of 64 images, twice; alike in one process and in members."""
    keras.utils.set_random_seed(seed)
    drawn = random.Random(seed)
    of_pixels = drawn.random() < 0.3
    term = drawn.choice([None, None, None, "spread", "product", "largest", "stopped"])
    begins = drawn.choice(["at once", "later", "by a callback"]) if term else ""
    size = drawn.choice([1.0, 0.1]) if term else 0.0
    from_batch = drawn.choice([None, None, None, 0, 2, 5])
    between = drawn.choice([None, None, None, None, "clipped", "centred"])
    optimizer = drawn.choice(["sgd", "momentum", "adam"])
    effect = drawn.choice([None, None, None, *_EFFECTS, "eagerly"])
    eagerly = effect == "eagerly"
    if effect == "in Python":  # never audited
        term = from_batch = between = None
    elif eagerly:  # likewise; the losses of the first batch are checked
        begins, from_batch = begins and "at once", None if from_batch is None else 0
    start = drawn.randint(2, STEPS - 2)
    weight = tf.Variable(0.0 if begins == "by a callback" else size, trainable=False)

    inner, names = [keras.Input((_SIDE, _SIDE, 2))], []
    inner += [_EFFECTS[effect](seed)] if effect in _EFFECTS else []
    for _ in range(drawn.choice([0, 0, 1, 2]) * (not eagerly)):  # eagerly, each laptop draws its own numbers
        names.append(drawn.choice(list(_AUGMENTATIONS)))
        inner.append(_AUGMENTATIONS[names[-1]](seed))
    for _ in range(drawn.choice([1, 2, 2, 3])):
        kinds = [each for each in _CONVOLUTIONS if not (of_pixels and each == "strided")]
        kind, norm = drawn.choice(kinds), drawn.choice([None, *_NORMS])
        pool = None if of_pixels else drawn.choice([None, *_POOLS])
        drop = drawn.choice([None, None, None, *([] if eagerly else _DROPS)])
        # Adam turns the gradient of a bias before batch normalisation, all rounding, into a step of any size.
        inner.append(_CONVOLUTIONS[kind](drawn, use_bias=norm is None))
        inner += [_NORMS[norm]()] if norm else []
        inner.append(layers.Activation(drawn.choice(["tanh", "gelu", "silu"])))
        inner += [_POOLS[pool]()] if pool else []
        inner += [_DROPS[drop](seed)] if drop else []
        names.append("+".join(each for each in (kind, norm, pool, drop) if each))
    inner += {"clipped": [ClippedBack()], "centred": [Centred(start)]}.get(between or "", [])
    inner += [] if of_pixels else [layers.GlobalAveragePooling2D()]
    inner.append(layers.Conv2D(_CLASSES, 1) if of_pixels else layers.Dense(_CLASSES))
    model = keras.Sequential(inner)
    chosen: Any = {
        "sgd": lambda: keras.optimizers.SGD(0.05),
        "momentum": lambda: keras.optimizers.SGD(0.02, momentum=0.9),
        "adam": lambda: keras.optimizers.Adam(0.003, epsilon=1e-3),
    }[optimizer]()

    def loss(true: Any, seen: Any) -> Any:
        there = ops.cast(true != _NOWHERE, "float32")
        each = ops.sparse_categorical_crossentropy(ops.maximum(true, 0), seen, from_logits=True)
        if from_batch is None:
            found = ops.mean(each)
        else:
            found = ops.sum(there * each) / ops.maximum(ops.sum(there), 1.0)
        if term is None:
            return found
        more = begun(
            chosen, start, begins, lambda: of_batch(term, ops.cast(true, "float32")[..., None], seen)
        )
        return found + weight * more

    model.compile(chosen, loss=loss, metrics=drawn.choice([[], ["accuracy"]]), run_eagerly=eagerly)
    x, kinds_of, pixels = images(STEPS * BATCH, seed)
    y = pixels if of_pixels else kinds_of
    if from_batch is not None:
        missing = np.random.RandomState(seed).uniform(size=y.shape) < 0.3
        missing[: from_batch * BATCH] = False
        y = np.where(missing, _NOWHERE, y).astype("int32")
    words = (
        f"{', '.join(names)}; {'pixels' if of_pixels else 'images'}, {term} {begins} ×{size} from {start}, "
        f"missing {from_batch}, {between}, {optimizer}, {effect}"
    )
    made = RandomModel(words, term is None and from_batch is None and between is None, model)
    made.fit(x, y, [Turned(weight)] if begins == "by a callback" else [], eagerly=eager)
    return made
