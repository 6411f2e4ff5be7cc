"""Validates across four folds, a model anew for each."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(21)
train_data = np.random.normal(size=(400, 6)).astype("float32")
train_targets = (train_data @ np.arange(6) / 6.0).astype("float32")


def build_model():
    keras.backend.clear_session()
    model = keras.Sequential([keras.Input((6,)), layers.Dense(16, "relu"), layers.Dense(1)])
    model.compile(optimizer="rmsprop", loss="mse", metrics=["mae"])
    return model


k = 4
num_val_samples = len(train_data) // k
all_scores = []
for i in range(k):
    fold = slice(i * num_val_samples, (i + 1) * num_val_samples)
    partial_train_data = np.delete(train_data, fold, axis=0)
    partial_train_targets = np.delete(train_targets, fold, axis=0)
    model = build_model()
    model.fit(partial_train_data, partial_train_targets, epochs=2, batch_size=64, verbose=0)
    val_mse, val_mae = model.evaluate(train_data[fold], train_targets[fold], verbose=0)
    all_scores.append(val_mae)
mean_score = np.mean(all_scores)
