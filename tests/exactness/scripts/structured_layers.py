"""Pets adopted or not: preprocessing layers inside the model, an input a column."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(33)
rows = 640
frame = {
    "fee": np.random.exponential(50, (rows, 1)).astype("float32"),
    "age": np.random.randint(0, 10, (rows, 1)),
    "type": np.random.choice(["Cat", "Dog"], (rows, 1)),
}
labels = (frame["age"][:, 0] < 4).astype("int32")
fee, age, kind = (
    keras.Input((1,), name="fee"),
    keras.Input((1,), name="age", dtype="int64"),
    keras.Input((1,), name="type", dtype="string"),
)
normalization = layers.Normalization(axis=None)
normalization.adapt(frame["fee"])
index = layers.IntegerLookup(max_tokens=8)
index.adapt(frame["age"])
strings = layers.StringLookup(output_mode="one_hot")
strings.adapt(frame["type"])
encoding = layers.CategoryEncoding(num_tokens=index.vocabulary_size())
x = layers.concatenate([normalization(fee), encoding(index(age)), strings(kind)])
x = layers.Dense(16, activation="relu")(x)
model = keras.Model([fee, age, kind], layers.Dense(1)(x))
model.compile(
    optimizer="adam",
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
data = tf.data.Dataset.from_tensor_slices((frame, labels)).shuffle(rows).batch(64)
history = model.fit(data, epochs=2, class_weight={0: 1.0, 1: 1.5}, verbose=0)
