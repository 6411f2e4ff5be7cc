"""Models that learn from the real data in this repository, with rows held out. Imports TensorFlow."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np

import resources
from bench.engine.typical import Gpt, residual
from bench.engine.work import TinyDigits, Work

EXAMPLES = Path(resources.__file__).parent / "examples"
HELD_OUT = 0.2
LENGTH = 64
"""Characters in a row of text."""


class Digits(TinyDigits):
    """A convolutional network for digits."""


class DigitsResNet(Work):
    """Six convolutions in three residual blocks, with batch normalization: 58,000 parameters."""

    def model(self) -> Any:
        inputs = keras.Input((8, 8, 1))
        x = keras.layers.Conv2D(16, 3, padding="same")(inputs)
        for filters in (16, 32, 32):
            x = residual(x, filters, 2 if filters > x.shape[-1] else 1)
        x = keras.layers.GlobalAveragePooling2D()(x)
        return keras.Model(inputs, keras.layers.Dense(10, activation="softmax")(x))


class Wine(Work):
    """Dense layers for a table of 13 measurements."""

    def model(self) -> Any:
        layers = keras.layers
        hidden = [layers.Dense(32, activation="tanh"), layers.Dense(32, activation="tanh")]
        return keras.Sequential([keras.Input((13,)), *hidden, layers.Dense(3, activation="softmax")])

    def optimizer(self) -> Any:
        return keras.optimizers.Adam(1e-3)


@dataclass(frozen=True, slots=True)
class Characters(Work):
    """A transformer with two blocks of width 64, each character predicted from those before it."""

    characters: int = 0

    def model(self) -> Any:
        layers = keras.layers
        inputs = keras.Input((LENGTH,), dtype="int32")
        x = layers.Embedding(self.characters, 64)(inputs)
        x = x + layers.Embedding(LENGTH, 64)(keras.ops.arange(LENGTH))
        for _ in range(2):
            normal = layers.LayerNormalization()(x)
            x = x + layers.MultiHeadAttention(4, 16)(normal, normal, use_causal_mask=True)
            normal = layers.LayerNormalization()(x)
            x = x + layers.Dense(64)(layers.Dense(256, activation="gelu")(normal))
        x = layers.LayerNormalization()(x)
        return keras.Model(inputs, layers.Dense(self.characters, activation="softmax")(x))

    def optimizer(self) -> Any:
        return keras.optimizers.Adam(1e-3)


def load(name: str) -> Work:
    """``learn-NAME:SEED``. The seed also decides which rows are held out."""
    kind, _, number = name.removeprefix("learn-").partition(":")
    seed = int(number or 1)
    if kind in ("characters", "gpt"):
        text, characters = _text()
        (rows, labels), held_out = _split(text[:, :-1], text[:, 1:], seed)
        if kind == "gpt":
            return Gpt(rows, labels, 16, held_out, seed)
        return Characters(rows, labels, 32, held_out, seed, characters)
    read, what, batch = {
        "digits": (digits, Digits, 32),
        "resnet": (digits, DigitsResNet, 32),
        "wine": (_wine, Wine, 16),
    }[kind]
    (rows, labels), held_out = _split(*read(), seed)
    return what(rows, labels, batch, held_out, seed)


def digits() -> tuple[Any, Any]:
    data = np.load(EXAMPLES / "digits" / "digits.npz")
    return data["images"][:, :, :, None].astype("float32") / 16, data["labels"].astype("int32")


def _wine() -> tuple[Any, Any]:
    with (EXAMPLES / "table" / "wine.csv").open(newline="") as file:
        _, *rows = csv.reader(file)
    table = np.array(rows, dtype="float32")
    measured = table[:, :-1]
    return (measured - measured.mean(0)) / measured.std(0), table[:, -1].astype("int32")


def _text() -> tuple[Any, int]:
    """Rows of character numbers, and how many characters there are."""
    lines = (EXAMPLES / "text" / "definitions.tsv").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line.partition("\t")[2] for line in lines)
    known = {each: number for number, each in enumerate(sorted(set(text)))}
    whole = np.array([known[each] for each in text], dtype="int32")
    rows = len(whole) // (LENGTH + 1)
    return whole[: rows * (LENGTH + 1)].reshape(rows, LENGTH + 1), len(known)


def _split(rows: Any, labels: Any, seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    order = np.random.default_rng(seed).permutation(len(rows))
    held, kept = np.split(order, [int(HELD_OUT * len(rows))])
    return (rows[kept], labels[kept]), (rows[held], labels[held])
