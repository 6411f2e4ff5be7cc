"""Models to train: little to compute, much to send, or much to compute. Imports TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import keras


@dataclass(frozen=True, slots=True)
class Work:
    """``batch`` is the global one. ``held_out``: inputs and labels that are never trained on. ``seed``: for
    the first weights and the order of rows."""

    images: Any
    labels: Any
    batch: int
    held_out: tuple[Any, Any] | None = None
    seed: int = 1

    @property
    def steps(self) -> int:
        """Steps in one epoch."""
        return -(-len(self.images) // self.batch)

    def model(self) -> Any:
        """Not compiled; outputs probabilities."""
        raise NotImplementedError

    def optimizer(self) -> Any:
        return keras.optimizers.SGD(learning_rate=0.01, momentum=0.9)


class TinyDigits(Work):
    """The network of the digits example: 36,000 parameters, a step of some milliseconds."""

    def model(self) -> Any:
        layers = keras.layers
        return keras.Sequential(
            [
                keras.Input((8, 8, 1)),
                layers.Conv2D(16, 3, padding="same", activation="tanh"),
                layers.Conv2D(32, 3, padding="same", activation="tanh"),
                layers.AveragePooling2D(2),
                layers.Flatten(),
                layers.Dense(64, activation="tanh"),
                layers.Dense(10, activation="softmax"),
            ]
        )


class FiveMillion(Work):
    """Dense layers with 4,989,010 parameters: 20 MB of gradients a step."""

    def model(self) -> Any:
        layers = keras.layers
        return keras.Sequential(
            [
                keras.Input((784,)),
                layers.Dense(2000, activation="relu"),
                layers.Dense(1700, activation="relu"),
                layers.Dense(10, activation="softmax"),
            ]
        )


class LongFiveMillion(FiveMillion):
    """With Adam's two moments: 60 MB to keep. An epoch takes longer than the time between checkpoints."""

    def optimizer(self) -> Any:
        return keras.optimizers.Adam()


class Pictures(Work):
    """Convolutions over pictures of 32 × 32: 19,722 parameters, and much to compute for each row."""

    def model(self) -> Any:
        layers = keras.layers
        return keras.Sequential(
            [
                keras.Input((32, 32, 3)),
                layers.Conv2D(32, 3, padding="same", activation="tanh"),
                layers.Conv2D(32, 3, padding="same", activation="tanh"),
                layers.AveragePooling2D(2),
                layers.Conv2D(32, 3, padding="same", activation="tanh"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(10, activation="softmax"),
            ]
        )
