"""A codebook: each vector becomes the nearest of a few, and the gradient passes by."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(43)
x_train = np.random.rand(640, 8, 8, 1).astype("float32")
data_variance = np.var(x_train)


class VectorQuantizer(layers.Layer):
    def __init__(self, num_embeddings, embedding_dim, beta=0.25, **kwargs):
        super().__init__(**kwargs)
        self.embedding_dim = embedding_dim
        self.num_embeddings = num_embeddings
        self.beta = beta
        self.embeddings = self.add_weight(
            shape=(embedding_dim, num_embeddings), initializer="random_uniform", name="embeddings_vqvae"
        )

    def call(self, x):
        input_shape = tf.shape(x)
        flattened = tf.reshape(x, [-1, self.embedding_dim])
        similarity = tf.matmul(flattened, self.embeddings)
        distances = (
            tf.reduce_sum(flattened**2, axis=1, keepdims=True)
            + tf.reduce_sum(self.embeddings**2, axis=0)
            - 2 * similarity
        )
        encodings = tf.one_hot(tf.argmin(distances, axis=1), self.num_embeddings)
        quantized = tf.reshape(tf.matmul(encodings, self.embeddings, transpose_b=True), input_shape)
        commitment_loss = tf.reduce_mean((tf.stop_gradient(quantized) - x) ** 2)
        codebook_loss = tf.reduce_mean((quantized - tf.stop_gradient(x)) ** 2)
        self.add_loss(self.beta * commitment_loss + codebook_loss)
        return x + tf.stop_gradient(quantized - x)


inputs = keras.Input(shape=(8, 8, 1))
x = layers.Conv2D(8, 3, activation="relu", strides=2, padding="same")(inputs)
quantized = VectorQuantizer(16, 4, name="vector_quantizer")(layers.Conv2D(4, 1, padding="same")(x))
outputs = layers.Conv2DTranspose(1, 3, strides=2, padding="same")(quantized)
vq_vae = keras.Model(inputs, outputs, name="vq_vae")


class VQVAETrainer(keras.Model):
    def __init__(self, train_variance, vqvae):
        super().__init__()
        self.train_variance = train_variance
        self.vqvae = vqvae
        self.total_loss_tracker = keras.metrics.Mean(name="total_loss")
        self.vq_loss_tracker = keras.metrics.Mean(name="vq_loss")

    @property
    def metrics(self):
        return [self.total_loss_tracker, self.vq_loss_tracker]

    def train_step(self, x):
        with tf.GradientTape() as tape:
            reconstructions = self.vqvae(x)
            reconstruction_loss = tf.reduce_mean((x - reconstructions) ** 2) / self.train_variance
            total_loss = reconstruction_loss + sum(self.vqvae.losses)
        grads = tape.gradient(total_loss, self.vqvae.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.vqvae.trainable_variables))
        self.total_loss_tracker.update_state(total_loss)
        self.vq_loss_tracker.update_state(sum(self.vqvae.losses))
        return {"loss": self.total_loss_tracker.result(), "vq_loss": self.vq_loss_tracker.result()}


trainer = VQVAETrainer(data_variance, vq_vae)
trainer.compile(optimizer=keras.optimizers.SGD(0.05))
history = trainer.fit(x_train, epochs=1, batch_size=64, verbose=0)
