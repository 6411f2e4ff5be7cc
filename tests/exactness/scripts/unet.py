"""Segments squares by a small U-Net, batches normalised."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(13)
x = np.random.rand(256, 16, 16, 3).astype("float32")
masks = (x.mean(axis=-1, keepdims=True) > 0.5).astype("uint8")


def get_model(size, num_classes):
    inputs = keras.Input((*size, 3))
    x = layers.Conv2D(8, 3, strides=2, padding="same")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Activation("relu")(x)
    previous = x
    x = layers.SeparableConv2D(16, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    x = layers.add([x, layers.Conv2D(16, 1, strides=2, padding="same")(previous)])
    x = layers.Conv2DTranspose(8, 3, padding="same")(layers.Activation("relu")(x))
    x = layers.UpSampling2D(2)(x)
    x = layers.UpSampling2D(2)(layers.Activation("relu")(x))
    return keras.Model(inputs, layers.Conv2D(num_classes, 3, activation="softmax", padding="same")(x))


model = get_model((16, 16), 2)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="sparse_categorical_crossentropy")
callbacks = [keras.callbacks.ModelCheckpoint("segmentation.keras", save_best_only=True)]
history = model.fit(
    x[:192],
    masks[:192],
    batch_size=32,
    epochs=2,
    validation_data=(x[192:], masks[192:]),
    callbacks=callbacks,
    verbose=0,
)
predictions = model.predict(x[192:], verbose=0)
