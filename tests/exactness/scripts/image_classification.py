"""Pictures turned and mirrored at random, and a network with dropout."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(50)
x = np.random.rand(320, 16, 16, 3).astype("float32")
y = (x[:, :8].mean((1, 2, 3)) > 0.5).astype("int32")
data_augmentation = [layers.RandomFlip("horizontal"), layers.RandomRotation(0.1)]


def make_model(input_shape, num_classes):
    inputs = keras.Input(shape=input_shape)
    h = inputs
    for layer in data_augmentation:
        h = layer(h)
    h = layers.Conv2D(8, 3, strides=2, padding="same")(layers.Rescaling(1.0 / 255)(h))
    h = layers.Activation("relu")(layers.BatchNormalization()(h))
    h = layers.GlobalAveragePooling2D()(h)
    return keras.Model(inputs, layers.Dense(1, activation=None)(layers.Dropout(0.25)(h)))


model = make_model((16, 16, 3), 2)
model.compile(
    optimizer=keras.optimizers.Adam(3e-4),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(name="acc")],
)
history = model.fit(x[:256], y[:256], batch_size=64, epochs=1, validation_data=(x[256:], y[256:]), verbose=0)
