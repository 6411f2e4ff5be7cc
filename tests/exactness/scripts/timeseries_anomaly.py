"""What a reconstruction of a window misses by much is an anomaly."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(16)
series = np.sin(np.arange(1000) / 7.0) + 0.1 * np.random.normal(size=1000)
series = (series - series.mean()) / series.std()
x_train = np.stack([series[i : i + 16] for i in range(len(series) - 16)])[..., None].astype("float32")
model = keras.Sequential(
    [
        layers.Input((16, 1)),
        layers.Conv1D(8, 7, padding="same", strides=2, activation="relu"),
        layers.Conv1D(4, 7, padding="same", strides=2, activation="relu"),
        layers.Conv1DTranspose(4, 7, padding="same", strides=2, activation="relu"),
        layers.Conv1DTranspose(8, 7, padding="same", strides=2, activation="relu"),
        layers.Conv1DTranspose(1, 7, padding="same"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.001), loss="mse")
history = model.fit(
    x_train,
    x_train,
    epochs=2,
    batch_size=128,
    validation_split=0.1,
    callbacks=[keras.callbacks.EarlyStopping(monitor="val_loss", patience=5, mode="min")],
    verbose=0,
)
train_mae_loss = np.mean(np.abs(model.predict(x_train, verbose=0) - x_train), axis=1)
threshold = np.max(train_mae_loss)
