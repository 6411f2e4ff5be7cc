"""A convolutional autoencoder that removes noise."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(15)
clean = np.random.rand(640, 8, 8, 1).astype("float32")
noisy = np.clip(clean + 0.4 * np.random.normal(size=clean.shape), 0.0, 1.0).astype("float32")
inputs = layers.Input((8, 8, 1))
x = layers.Conv2D(8, (3, 3), activation="relu", padding="same")(inputs)
x = layers.MaxPooling2D((2, 2), padding="same")(x)
x = layers.Conv2DTranspose(8, (3, 3), strides=2, activation="relu", padding="same")(x)
x = layers.Conv2D(1, (3, 3), activation="sigmoid", padding="same")(x)
autoencoder = keras.Model(inputs, x)
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")
first = autoencoder.fit(clean, clean, epochs=1, batch_size=64, shuffle=True, validation_split=0.2, verbose=0)
second = autoencoder.fit(noisy, clean, epochs=1, batch_size=64, shuffle=True, validation_split=0.2, verbose=0)
predictions = autoencoder.predict(noisy[:100], verbose=0)
