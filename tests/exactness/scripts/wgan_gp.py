"""A critic whose gradient is held near one, trained three times as often as the generator."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(42)
data = np.random.normal([2.0, -1.0], 0.5, (640, 2)).astype("float32")


class WGAN(keras.Model):
    def __init__(self, discriminator, generator, latent_dim, discriminator_extra_steps=3, gp_weight=10.0):
        super().__init__()
        self.discriminator = discriminator
        self.generator = generator
        self.latent_dim = latent_dim
        self.d_steps = discriminator_extra_steps
        self.gp_weight = gp_weight

    def compile(self, d_optimizer, g_optimizer, d_loss_fn, g_loss_fn):
        super().compile()
        self.d_optimizer = d_optimizer
        self.g_optimizer = g_optimizer
        self.d_loss_fn = d_loss_fn
        self.g_loss_fn = g_loss_fn

    def gradient_penalty(self, batch_size, real, fake):
        alpha = tf.random.uniform([batch_size, 1], 0.0, 1.0)
        interpolated = real + alpha * (fake - real)
        with tf.GradientTape() as gp_tape:
            gp_tape.watch(interpolated)
            pred = self.discriminator(interpolated, training=True)
        grads = gp_tape.gradient(pred, [interpolated])[0]
        norm = tf.sqrt(tf.reduce_sum(tf.square(grads), axis=[1]))
        return tf.reduce_mean((norm - 1.0) ** 2)

    def train_step(self, real):
        batch_size = tf.shape(real)[0]
        for _ in range(self.d_steps):
            latent = tf.random.normal(shape=(batch_size, self.latent_dim))
            with tf.GradientTape() as tape:
                fake = self.generator(latent, training=True)
                d_cost = self.d_loss_fn(self.discriminator(real), self.discriminator(fake))
                d_loss = d_cost + self.gradient_penalty(batch_size, real, fake) * self.gp_weight
            d_gradient = tape.gradient(d_loss, self.discriminator.trainable_variables)
            self.d_optimizer.apply_gradients(zip(d_gradient, self.discriminator.trainable_variables))
        latent = tf.random.normal(shape=(batch_size, self.latent_dim))
        with tf.GradientTape() as tape:
            g_loss = self.g_loss_fn(self.discriminator(self.generator(latent, training=True), training=True))
        gen_gradient = tape.gradient(g_loss, self.generator.trainable_variables)
        self.g_optimizer.apply_gradients(zip(gen_gradient, self.generator.trainable_variables))
        return {"d_loss": d_loss, "g_loss": g_loss}


generator = keras.Sequential([keras.Input((4,)), layers.Dense(16, "relu"), layers.Dense(2)])
critic = keras.Sequential([keras.Input((2,)), layers.Dense(16, "tanh"), layers.Dense(1)])
wgan = WGAN(critic, generator, 4)
wgan.compile(
    keras.optimizers.Adam(2e-4, beta_1=0.5, beta_2=0.9),
    keras.optimizers.Adam(2e-4, beta_1=0.5, beta_2=0.9),
    lambda real, fake: tf.reduce_mean(fake) - tf.reduce_mean(real),
    lambda fake: -tf.reduce_mean(fake),
)
history = wgan.fit(data, batch_size=64, epochs=1, verbose=0)
