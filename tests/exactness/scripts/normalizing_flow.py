"""Density of dots by invertible coupling layers."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(49)
data = np.random.normal(size=(640, 2)).astype("float32")
data[:, 1] = data[:, 0] ** 2 + 0.2 * data[:, 1]


def coupling():
    inputs = keras.Input((2,))
    t, s = layers.Dense(16, "relu")(inputs), layers.Dense(16, "relu")(inputs)
    return keras.Model(inputs, [layers.Dense(2, "tanh")(s), layers.Dense(2)(t)])


class RealNVP(keras.Model):
    def __init__(self, num_coupling_layers):
        super().__init__()
        self.masks = np.array([[0, 1], [1, 0]] * (num_coupling_layers // 2), "float32")
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.layers_list = [coupling() for _ in range(num_coupling_layers)]

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, x):
        log_det_inv = 0
        for mask, layer in zip(self.masks, self.layers_list):
            x_masked = x * mask
            reversed_mask = 1 - mask
            s, t = layer(x_masked)
            s, t = s * reversed_mask, t * reversed_mask
            x = reversed_mask * (x - t) * tf.exp(-s) + x_masked
            log_det_inv -= tf.reduce_sum(s, [1])
        return x, log_det_inv

    def log_loss(self, x):
        y, logdet = self(x)
        log_likelihood = -0.5 * tf.reduce_sum(y**2, axis=1) - np.log(2 * np.pi) + logdet
        return -tf.reduce_mean(log_likelihood)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.log_loss(data)
        g = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(g, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        self.loss_tracker.update_state(self.log_loss(data))
        return {"loss": self.loss_tracker.result()}


model = RealNVP(num_coupling_layers=4)
model.compile(optimizer=keras.optimizers.SGD(learning_rate=0.001))
history = model.fit(data, batch_size=64, epochs=1, verbose=0, validation_split=0.2)
