"""Models as people train them on laptops, on random data: time and bytes do not depend on its values.

Imports TensorFlow.
"""

from __future__ import annotations

from typing import Any

import keras

from bench.engine.work import Work

CHARACTERS, LENGTH = 96, 64
"""A GPT's vocabulary, and the characters in each of its rows."""


class SmallConvnet(Work):
    """For pictures of 32 × 32: 517,000 parameters."""

    def model(self) -> Any:
        layers = keras.layers
        return keras.Sequential(
            [
                keras.Input((32, 32, 3)),
                *(layers.Conv2D(32, 3, padding="same", activation="relu") for _ in range(2)),
                layers.MaxPooling2D(2),
                *(layers.Conv2D(64, 3, padding="same", activation="relu") for _ in range(2)),
                layers.MaxPooling2D(2),
                layers.Flatten(),
                layers.Dense(110, activation="relu"),
                layers.Dense(10, activation="softmax"),
            ]
        )


class ResNet20(Work):
    """He et al. 2015, section 4.2: 274,000 parameters."""

    def model(self) -> Any:
        layers = keras.layers
        inputs = keras.Input((32, 32, 3))
        x = _normal(inputs, 16)
        for filters in (16, 32, 64):
            for block in range(3):
                x = residual(x, filters, 2 if filters > 16 and block == 0 else 1)
        x = layers.GlobalAveragePooling2D()(x)
        return keras.Model(inputs, layers.Dense(10, activation="softmax")(x))


def residual(x: Any, filters: int, strides: int) -> Any:
    """Two convolutions, and a shortcut past them."""
    layers = keras.layers
    shortcut = layers.Conv2D(filters, 1, strides=strides)(x) if strides == 2 else x
    x = _normal(_normal(x, filters, strides), filters, activation=None)
    return layers.ReLU()(layers.Add()([x, shortcut]))


def _normal(x: Any, filters: int, strides: int = 1, activation: str | None = "relu") -> Any:
    x = keras.layers.Conv2D(filters, 3, strides=strides, padding="same", use_bias=False)(x)
    x = keras.layers.BatchNormalization()(x)
    return keras.layers.Activation(activation)(x) if activation else x


class Gpt(Work):
    """Four blocks of width 160, each character predicted from those before it: 1.3 million parameters."""

    def model(self) -> Any:
        layers = keras.layers
        inputs = keras.Input((LENGTH,), dtype="int32")
        places = layers.Embedding(LENGTH, 160)(keras.ops.arange(LENGTH))
        x = layers.Embedding(CHARACTERS, 160)(inputs) + places
        for _ in range(4):
            normal = layers.LayerNormalization()(x)
            x = x + layers.MultiHeadAttention(4, 40)(normal, normal, use_causal_mask=True)
            normal = layers.LayerNormalization()(x)
            x = x + layers.Dense(160)(layers.Dense(640, activation="gelu")(normal))
        x = layers.LayerNormalization()(x)
        return keras.Model(inputs, layers.Dense(CHARACTERS, activation="softmax")(x))

    def optimizer(self) -> Any:
        return keras.optimizers.Adam(1e-3)


class MobileNetV2(Work):
    """At 96 × 96: 2.3 million parameters."""

    def model(self) -> Any:
        return keras.applications.MobileNetV2((96, 96, 3), weights=None, classes=10)


class ResNet50(Work):
    """At 96 × 96: 23.6 million parameters."""

    def model(self) -> Any:
        return keras.applications.ResNet50(weights=None, input_shape=(96, 96, 3), classes=10)
