"""Three quantiles at once, by a loss of one's own; the rate warms up and falls."""

import math

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(48)
x = np.random.uniform(-1, 1, (1280, 4)).astype("float32")
y = (np.sin(3 * x[:, :1]) + 0.3 * np.random.normal(size=(1280, 1))).astype("float32")
quantiles = np.array([0.1, 0.5, 0.9], "float32")


@keras.saving.register_keras_serializable(package="quantiles")
class WarmUpCosine(keras.optimizers.schedules.LearningRateSchedule):
    def __init__(self, base, total_steps, warmup_steps):
        self.base, self.total_steps, self.warmup_steps = base, total_steps, warmup_steps

    def __call__(self, step):
        step = ops.cast(step, "float32")
        cosine = 0.5 * self.base * (1 + ops.cos(math.pi * (step - self.warmup_steps) / self.total_steps))
        return ops.where(step < self.warmup_steps, self.base * step / self.warmup_steps, cosine)

    def get_config(self):
        return {"base": self.base, "total_steps": self.total_steps, "warmup_steps": self.warmup_steps}


def pinball(y_true, y_pred):
    error = y_true - y_pred
    return ops.mean(ops.maximum(quantiles * error, (quantiles - 1) * error), axis=-1)


model = keras.Sequential([keras.Input((4,)), layers.Dense(16, "relu"), layers.Dense(3)])
model.compile(keras.optimizers.Adam(WarmUpCosine(0.01, 40, 5)), loss=pinball)
history = model.fit(x, y, batch_size=64, epochs=2, validation_split=0.2, verbose=0)
model.save("quantiles.keras")
predicted = model.predict(x[:200], verbose=0)
