"""Tickets: a priority and a department from title, text and tags."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(31)
num_tags, num_words, num_departments = 12, 100, 4
title_data = np.random.randint(num_words, size=(640, 10))
body_data = np.random.randint(num_words, size=(640, 20))
tags_data = np.random.randint(2, size=(640, num_tags)).astype("float32")
priority_targets = np.random.random(size=(640, 1))
dept_targets = np.eye(num_departments)[np.random.randint(num_departments, size=640)]

title_input = keras.Input(shape=(None,), name="title")
body_input = keras.Input(shape=(None,), name="body")
tags_input = keras.Input(shape=(num_tags,), name="tags")
title_features = layers.LSTM(16)(layers.Embedding(num_words, 8, mask_zero=True)(title_input))
body_features = layers.LSTM(8)(layers.Embedding(num_words, 8)(body_input))
x = layers.concatenate([title_features, body_features, tags_input])
priority_pred = layers.Dense(1, name="priority")(x)
department_pred = layers.Dense(num_departments, name="department")(x)
model = keras.Model(
    [title_input, body_input, tags_input], {"priority": priority_pred, "department": department_pred}
)
model.compile(
    optimizer=keras.optimizers.RMSprop(1e-3),
    loss={
        "priority": keras.losses.BinaryCrossentropy(from_logits=True),
        "department": keras.losses.CategoricalCrossentropy(from_logits=True),
    },
    loss_weights={"priority": 1.0, "department": 0.2},
    metrics={"department": ["accuracy", "auc"]},
)
history = model.fit(
    {"title": title_data, "body": body_data, "tags": tags_data},
    {"priority": priority_targets, "department": dept_targets},
    epochs=1,
    batch_size=32,
    verbose=0,
)
