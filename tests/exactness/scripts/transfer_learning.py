"""A network trained on one task, frozen below a new head, then trained finely as a whole."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(20)
x = np.random.rand(640, 10, 10, 3).astype("float32")
before, y = (x[:, :5].mean((1, 2, 3)) > 0.5).astype("int32"), (x.mean((1, 2, 3)) > 0.5).astype("float32")

base_inputs = keras.Input((10, 10, 3))
h = layers.Conv2D(8, 3, strides=2)(base_inputs)
h = layers.BatchNormalization(synchronized=True)(h)
h = layers.GlobalAveragePooling2D()(layers.ReLU()(h))
base_model = keras.Model(base_inputs, h, name="base")
pretrained = keras.Sequential([base_model, layers.Dense(2, activation="softmax")])
pretrained.compile("sgd", "sparse_categorical_crossentropy")
pretrained.fit(x, before, batch_size=64, verbose=0)

base_model.trainable = False
inputs = keras.Input((10, 10, 3))
scaled = layers.Rescaling(scale=2.0, offset=-1)(inputs)
outputs = layers.Dense(1)(base_model(scaled, training=False))
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy()],
)
head = model.fit(x[:512], y[:512], batch_size=64, epochs=1, validation_data=(x[512:], y[512:]), verbose=0)

base_model.trainable = True
model.compile(
    optimizer=keras.optimizers.Adam(1e-5),
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy()],
)
whole = model.fit(x[:512], y[:512], batch_size=64, epochs=1, validation_data=(x[512:], y[512:]), verbose=0)
loss, accuracy = model.evaluate(x[512:], y[512:], verbose=0)
