"""Retrieval: a user's tower and an item's, told apart from the batch's other items."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(19)
users = np.random.randint(1, 60, (1280, 1)).astype("int32")
items = ((users * 7 + np.random.randint(0, 3, users.shape)) % 80).astype("int32")


def tower(size):
    return keras.Sequential([layers.Embedding(size, 16), layers.Flatten(), layers.Dense(8)])


user, item = keras.Input((1,), dtype="int32", name="user"), keras.Input((1,), dtype="int32", name="item")
query, candidate = tower(60)(user), tower(80)(item)
model = keras.Model({"user": user, "item": item}, layers.Concatenate()([query, candidate]))


def retrieval(y_true, y_pred):
    queries, candidates = ops.split(y_pred, 2, axis=-1)
    scores = ops.matmul(queries, ops.transpose(candidates))
    labels = ops.arange(ops.shape(scores)[0])
    return keras.losses.sparse_categorical_crossentropy(labels, scores, from_logits=True)


model.compile(keras.optimizers.Adagrad(0.1), loss=retrieval)
history = model.fit(
    {"user": users, "item": items}, np.zeros(1280, "float32"), batch_size=64, epochs=1, verbose=0
)
