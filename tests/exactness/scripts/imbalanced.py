"""Frauds are rare: weights by class, and metrics that see it."""

import keras
import numpy as np

keras.utils.set_random_seed(47)
features = np.random.normal(size=(1280, 8)).astype("float32")
targets = (features[:, :1] > 1.5).astype("uint8")
mean, std = features[:1024].mean(axis=0), features[:1024].std(axis=0)
features = (features - mean) / std
counts = np.bincount(targets[:1024, 0])
model = keras.Sequential(
    [
        keras.Input(shape=features.shape[1:]),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
metrics = [
    keras.metrics.FalseNegatives(name="fn"),
    keras.metrics.FalsePositives(name="fp"),
    keras.metrics.TrueNegatives(name="tn"),
    keras.metrics.TruePositives(name="tp"),
    keras.metrics.Precision(name="precision"),
    keras.metrics.Recall(name="recall"),
    keras.metrics.AUC(name="prc", curve="PR"),
]
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="binary_crossentropy", metrics=metrics)
history = model.fit(
    features[:1024],
    targets[:1024],
    batch_size=128,
    epochs=2,
    verbose=0,
    callbacks=[keras.callbacks.ModelCheckpoint("fraud_model_at_epoch_{epoch}.keras")],
    validation_data=(features[1024:], targets[1024:]),
    class_weight={0: 1.0 / counts[0], 1: 1.0 / counts[1]},
)
