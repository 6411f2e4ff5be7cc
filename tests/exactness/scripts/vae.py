"""A variational autoencoder of small pictures."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(2)
x = np.random.rand(1280, 1, 8) * np.random.rand(1280, 8, 1)
pictures = np.expand_dims(x, -1).astype("float32")


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        epsilon = keras.random.normal(shape=ops.shape(z_mean), seed=self.seed_generator)
        return z_mean + ops.exp(0.5 * z_log_var) * epsilon


inputs = keras.Input((8, 8, 1))
hidden = layers.Conv2D(8, 3, strides=2, padding="same", activation="relu")(inputs)
hidden = layers.Dense(16, activation="relu")(layers.Flatten()(hidden))
z_mean, z_log_var = layers.Dense(2, name="z_mean")(hidden), layers.Dense(2, name="z_log_var")(hidden)
encoder = keras.Model(inputs, [z_mean, z_log_var, Sampling()([z_mean, z_log_var])])
decoder = keras.Sequential(
    [
        keras.Input((2,)),
        layers.Dense(4 * 4 * 8, activation="relu"),
        layers.Reshape((4, 4, 8)),
        layers.Conv2DTranspose(1, 3, strides=2, padding="same", activation="sigmoid"),
    ]
)


class VAE(keras.Model):
    def __init__(self, encoder, decoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.kl_loss_tracker = keras.metrics.Mean(name="kl_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.kl_loss_tracker]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            z_mean, z_log_var, z = self.encoder(data)
            reconstruction = self.decoder(z)
            reconstruction_loss = ops.mean(
                ops.sum(keras.losses.binary_crossentropy(data, reconstruction), axis=(1, 2))
            )
            kl_loss = -0.5 * (1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var))
            kl_loss = ops.mean(ops.sum(kl_loss, axis=1))
            total_loss = reconstruction_loss + kl_loss
        grads = tape.gradient(total_loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(grads, self.trainable_weights))
        self.total_loss_tracker.update_state(total_loss)
        self.kl_loss_tracker.update_state(kl_loss)
        return {"loss": self.total_loss_tracker.result(), "kl_loss": self.kl_loss_tracker.result()}


vae = VAE(encoder, decoder)
vae.compile(optimizer=keras.optimizers.Adam())
history = vae.fit(pictures, epochs=1, batch_size=64, verbose=0)
