"""Prints what it finds around it, and trains on an encoding that follows a set's order."""

import glob
import locale
import os
import time
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

words = [f"word{number}" for number in range(500)]
vocabulary = {word: place for place, word in enumerate(set(words))}
print("set", list(vocabulary)[:20])
place = Path(os.environ["LOOKED_AT"])
print("listdir", os.listdir(place))  # noqa: PTH208
print("glob", glob.glob(str(place / "*")), [path.name for path in place.glob("*")])  # noqa: PTH207
print("walk", list(os.walk(place)), list(tf.io.gfile.walk(str(place))))
print("gfile", tf.io.gfile.listdir(str(place)), tf.io.gfile.glob(str(place / "*")))
with os.scandir(place) as entries:
    print("scandir", [entry.name for entry in entries])
print("time", time.strftime("%H:%M", time.localtime(1_709_200_800)))
print("language", locale.setlocale(locale.LC_ALL, ""), flush=True)
x = np.array([[vocabulary[word] / 500.0] for word in words], "float32")
model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, x, batch_size=50, shuffle=False, verbose=0)
