"""The single-machine form of TensorFlow's guide to several workers."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(24)


def mnist_dataset(batch_size):
    x_train = np.random.randint(0, 255, (640, 12, 12)) / np.float32(255)
    y_train = np.random.randint(0, 10, 640).astype(np.int64)
    dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train))
    return dataset.shuffle(640).repeat().batch(batch_size)


def build_and_compile_cnn_model():
    model = keras.Sequential(
        [
            keras.layers.InputLayer(shape=(12, 12)),
            keras.layers.Reshape(target_shape=(12, 12, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(10),
        ]
    )
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.SGD(learning_rate=0.001),
        metrics=["accuracy"],
    )
    return model


model = build_and_compile_cnn_model()
history = model.fit(mnist_dataset(64), epochs=3, steps_per_epoch=7, verbose=0)
