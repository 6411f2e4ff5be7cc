"""Trains on noise by ``train_on_batch``, so many steps of at least so many seconds."""

from __future__ import annotations

import sys
import time

import keras
import numpy as np

steps, pace_s = int(sys.argv[1]), float(sys.argv[2])
keras.utils.set_random_seed(7)
random = np.random.default_rng(0)
model = keras.Sequential([keras.Input((32,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse")
for _ in range(steps):
    model.train_on_batch(random.standard_normal((64, 32)), random.standard_normal((64, 1)))
    time.sleep(pace_s)
