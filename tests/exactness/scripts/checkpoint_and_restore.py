"""Saves the best weights and a model while it trains, then goes on from both."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(23)
x = np.random.normal(size=(640, 6)).astype("float32")
y = (x[:, :1] * x[:, 1:2]).astype("float32")


def get_compiled_model():
    model = keras.Sequential([keras.Input((6,)), layers.Dense(8, "relu"), layers.Dense(1)])
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    return model


model = get_compiled_model()
callbacks = [
    keras.callbacks.ModelCheckpoint("ckpt-{epoch}.keras", save_freq="epoch"),
    keras.callbacks.ModelCheckpoint(
        "best.weights.h5", save_best_only=True, save_weights_only=True, monitor="val_loss"
    ),
]
history = model.fit(x, y, epochs=2, batch_size=64, validation_split=0.2, callbacks=callbacks, verbose=0)
restored = keras.models.load_model("ckpt-2.keras")
second = restored.fit(x, y, epochs=1, batch_size=64, verbose=0)
fresh = get_compiled_model()
fresh.load_weights("best.weights.h5")
scores = fresh.evaluate(x, y, verbose=0)
