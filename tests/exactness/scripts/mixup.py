"""Mixup of two datasets, in the data's pipeline."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(35)
x = np.random.rand(640, 8, 8, 1).astype("float32")
y = keras.utils.to_categorical(np.random.randint(0, 3, 640), 3).astype("float32")


def sample_beta_distribution(size, concentration_0=0.2, concentration_1=0.2):
    gamma_1 = tf.random.gamma(shape=[size], alpha=concentration_1)
    gamma_2 = tf.random.gamma(shape=[size], alpha=concentration_0)
    return gamma_1 / (gamma_1 + gamma_2)


def mix_up(ds_one, ds_two, alpha=0.2):
    images_one, labels_one = ds_one
    images_two, labels_two = ds_two
    batch_size = tf.shape(images_one)[0]
    mix = sample_beta_distribution(batch_size, alpha, alpha)
    x_l, y_l = tf.reshape(mix, (batch_size, 1, 1, 1)), tf.reshape(mix, (batch_size, 1))
    return images_one * x_l + images_two * (1 - x_l), labels_one * y_l + labels_two * (1 - y_l)


one = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(64)
two = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(64)
train_ds_mu = tf.data.Dataset.zip((one, two)).map(lambda one, two: mix_up(one, two, alpha=0.2))
model = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(4, 3, activation="relu"),
        layers.Flatten(),
        layers.Dense(3, "softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
history = model.fit(train_ds_mu, epochs=2, verbose=0)
