"""Reads a row of signs, with the loss in a layer, as for captchas."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(12)
labels = np.random.randint(1, 6, (640, 3)).astype("int32")
images = np.repeat(keras.utils.to_categorical(labels, 6), 3, axis=1)
images = (images + 0.1 * np.random.normal(size=images.shape)).astype("float32")


class CTCLayer(layers.Layer):
    def call(self, y_true, y_pred):
        self.add_loss(ops.mean(keras.losses.ctc(y_true, y_pred)))
        return y_pred


pictures = keras.Input((9, 6), name="image")
truth = keras.Input((3,), name="label", dtype="int32")
x = layers.Dense(16, "relu")(pictures)
x = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(x)
output = CTCLayer()(truth, layers.Dense(6)(x))
model = keras.Model([pictures, truth], output)
model.compile(optimizer=keras.optimizers.SGD(0.02))
history = model.fit({"image": images, "label": labels}, batch_size=64, epochs=2, verbose=0)
