"""Two views whose features are to agree, and not to repeat each other: a correlation over the batch."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(45)
x = np.random.normal(size=(640, 12)).astype("float32")
views = ((x + 0.1).astype("float32"), (0.9 * x).astype("float32"))


class BarlowLoss(keras.losses.Loss):
    def __init__(self, batch_size):
        super().__init__()
        self.lambda_amt = 5e-3
        self.batch_size = batch_size

    def call(self, z_a, z_b):
        z_a = (z_a - tf.reduce_mean(z_a, axis=0)) / (tf.math.reduce_std(z_a, axis=0) + 1e-6)
        z_b = (z_b - tf.reduce_mean(z_b, axis=0)) / (tf.math.reduce_std(z_b, axis=0) + 1e-6)
        corr = tf.matmul(z_a, z_b, transpose_a=True) / self.batch_size
        difference = tf.pow(corr - tf.eye(tf.shape(corr)[0]), 2)
        off_diagonal = difference * (1 - tf.eye(tf.shape(corr)[0]))
        return tf.reduce_sum(tf.linalg.diag_part(difference)) + self.lambda_amt * tf.reduce_sum(off_diagonal)


class BarlowModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([keras.Input((12,)), layers.Dense(16, "relu"), layers.Dense(6)])
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def train_step(self, batch):
        y_a, y_b = batch
        with tf.GradientTape() as tape:
            loss = self.loss(self.encoder(y_a, training=True), self.encoder(y_b, training=True))
        grads = tape.gradient(loss, self.encoder.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.encoder.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


bm = BarlowModel()
bm.compile(optimizer=keras.optimizers.SGD(0.001), loss=BarlowLoss(64))
history = bm.fit(
    tf.data.Dataset.from_tensor_slices(views).batch(64, drop_remainder=True), epochs=1, verbose=0
)
