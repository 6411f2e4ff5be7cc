"""Denoising diffusion of dots, with a moving average of the network."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(3)
dots = np.random.normal(size=(1280, 2)).astype("float32") * [3.0, 1.0] + [1.0, 0.0]
dots = dots.astype("float32")


def get_network():
    noisy, variances = keras.Input((2,)), keras.Input((1,))
    x = layers.Concatenate()([noisy, variances])
    x = layers.Dense(32, activation="swish")(x)
    return keras.Model([noisy, variances], layers.Dense(2, kernel_initializer="zeros")(x))


class DiffusionModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.normalizer = layers.Normalization()
        self.network = get_network()
        self.ema_network = keras.models.clone_model(self.network)
        self.seed_generator = keras.random.SeedGenerator(7)

    def compile(self, **kwargs):
        super().compile(**kwargs)
        self.noise_loss_tracker = keras.metrics.Mean(name="n_loss")

    @property
    def metrics(self):
        return [self.noise_loss_tracker]

    def diffusion_schedule(self, times):
        angles = 0.3 + times * (1.5 - 0.3)
        return ops.sin(angles), ops.cos(angles)

    def denoise(self, noisy, noise_rates, signal_rates, training):
        network = self.network if training else self.ema_network
        pred_noises = network([noisy, noise_rates**2], training=training)
        return pred_noises, (noisy - noise_rates * pred_noises) / signal_rates

    def noisy(self, data):
        data = self.normalizer(data, training=True)
        shape = ops.shape(data)
        noises = keras.random.normal(shape=shape, seed=self.seed_generator)
        times = keras.random.uniform(shape=(shape[0], 1), seed=self.seed_generator)
        noise_rates, signal_rates = self.diffusion_schedule(times)
        return noises, signal_rates * data + noise_rates * noises, noise_rates, signal_rates

    def train_step(self, data):
        noises, noisy, noise_rates, signal_rates = self.noisy(data)
        with tf.GradientTape() as tape:
            pred_noises, _ = self.denoise(noisy, noise_rates, signal_rates, training=True)
            noise_loss = self.loss(noises, pred_noises)
        gradients = tape.gradient(noise_loss, self.network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.network.trainable_weights))
        self.noise_loss_tracker.update_state(noise_loss)
        for weight, ema_weight in zip(self.network.weights, self.ema_network.weights):
            ema_weight.assign(0.99 * ema_weight + 0.01 * weight)
        return {m.name: m.result() for m in self.metrics}

    def test_step(self, data):
        noises, noisy, noise_rates, signal_rates = self.noisy(data)
        pred_noises, _ = self.denoise(noisy, noise_rates, signal_rates, training=False)
        self.noise_loss_tracker.update_state(self.loss(noises, pred_noises))
        return {m.name: m.result() for m in self.metrics}


model = DiffusionModel()
model.compile(
    optimizer=keras.optimizers.AdamW(1e-3, weight_decay=1e-4), loss=keras.losses.mean_absolute_error
)
model.normalizer.adapt(dots)
train, test = dots[:1024], dots[1024:]
history = model.fit(train, validation_data=(test,), batch_size=64, epochs=1, verbose=0)
