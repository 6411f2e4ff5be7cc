"""What a benchmark's members train, by name. Imports TensorFlow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.engine import learning, typical, work
from bench.engine.typical import CHARACTERS, LENGTH

PICTURES: dict[str, tuple[type[work.Work], int, int, int]] = {
    "convnet": (typical.SmallConvnet, 32, 40, 64),
    "resnet20": (typical.ResNet20, 32, 20, 64),
    "mobilenetv2": (typical.MobileNetV2, 96, 16, 32),
    "pictures": (work.Pictures, 32, 16, 256),
    "resnet50": (typical.ResNet50, 96, 8, 16),
}
"""Their width in pixels, steps in an epoch, rows in a batch."""


def load(name: str) -> work.Work:
    """The work by its name on the command line; ``/2`` after it halves the batch, ``:4`` leaves so many
    steps in an epoch."""
    if name.startswith("learn-"):
        return learning.load(name)
    name, _, steps = name.partition(":")
    name, _, parts = name.partition("/")
    whole = _load(name)
    batch = whole.batch // int(parts or 1)
    rows = int(steps) * batch if steps else len(whole.images)
    return replace(whole, images=whole.images[:rows], labels=whole.labels[:rows], batch=batch)


def _load(name: str) -> work.Work:
    if name == "digits":
        return work.TinyDigits(*learning.digits(), batch=64)
    if name in ("5m", "5m-few-rows", "5m-long-epochs"):
        batch = 16 if name == "5m-few-rows" else 128
        rows = batch * (40 if name == "5m-long-epochs" else 10)
        random = np.random.default_rng(0)
        images = random.random((rows, 784), np.float32)
        return work.FiveMillion(images, random.integers(0, 10, rows).astype("int32"), batch=batch)
    if name == "5m-adam":
        random = np.random.default_rng(0)
        images = random.random((240 * 128, 784), np.float32)
        return work.LongFiveMillion(images, random.integers(0, 10, len(images)).astype("int32"), batch=128)
    if name == "gpt":
        random = np.random.default_rng(0)
        text = random.integers(0, CHARACTERS, (20 * 32, LENGTH + 1)).astype("int32")
        return typical.Gpt(text[:, :-1], text[:, 1:], batch=32)
    if name in PICTURES:
        kind, side, steps, batch = PICTURES[name]
        random = np.random.default_rng(0)
        images = random.random((steps * batch, side, side, 3), np.float32)
        return kind(images, random.integers(0, 10, len(images)).astype("int32"), batch=batch)
    raise ValueError(f"no such work: {name}")
