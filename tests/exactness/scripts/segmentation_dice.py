"""Segments by a loss of overlap written by hand, over the whole batch."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(14)
x = np.random.rand(512, 12, 12, 1).astype("float32")
masks = (x > 0.6).astype("float32")


def dice_coef(y_true, y_pred, smooth=1.0):
    y_true_f, y_pred_f = ops.reshape(y_true, (-1,)), ops.reshape(y_pred, (-1,))
    intersection = ops.sum(y_true_f * y_pred_f)
    return (2.0 * intersection + smooth) / (ops.sum(y_true_f) + ops.sum(y_pred_f) + smooth)


def dice_coef_loss(y_true, y_pred):
    return 1.0 - dice_coef(y_true, y_pred)


model = keras.Sequential(
    [
        keras.Input((12, 12, 1)),
        layers.Conv2D(4, 3, activation="relu", padding="same"),
        layers.Conv2D(1, 1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.SGD(0.1), loss=dice_coef_loss)
history = model.fit(x, masks, batch_size=64, epochs=2, verbose=0)
