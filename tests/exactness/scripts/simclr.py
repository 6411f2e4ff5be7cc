"""SimCLR: two views of each picture, told apart from all others of the batch."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(6)
x = np.random.normal(size=(1280, 16)).astype("float32")
y = (x[:, 0] > 0).astype("int32")


class ContrastiveModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.temperature = 0.1
        self.encoder = keras.Sequential([keras.Input((16,)), layers.Dense(16, "relu"), layers.Dense(8)])
        self.projection_head = keras.Sequential([keras.Input((8,)), layers.Dense(8, "relu"), layers.Dense(8)])
        self.linear_probe = keras.Sequential([keras.Input((8,)), layers.Dense(2)])

    def compile(self, contrastive_optimizer, probe_optimizer, **kwargs):
        super().compile(**kwargs)
        self.contrastive_optimizer = contrastive_optimizer
        self.probe_optimizer = probe_optimizer
        self.probe_loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        self.contrastive_loss_tracker = keras.metrics.Mean(name="c_loss")
        self.contrastive_accuracy = keras.metrics.SparseCategoricalAccuracy(name="c_acc")
        self.probe_accuracy = keras.metrics.SparseCategoricalAccuracy(name="p_acc")

    @property
    def metrics(self):
        return [self.contrastive_loss_tracker, self.contrastive_accuracy, self.probe_accuracy]

    def contrastive_loss(self, one, two):
        one, two = ops.normalize(one, axis=1), ops.normalize(two, axis=1)
        similarities = ops.matmul(one, ops.transpose(two)) / self.temperature
        labels = ops.arange(ops.shape(one)[0])
        self.contrastive_accuracy.update_state(labels, similarities)
        self.contrastive_accuracy.update_state(labels, ops.transpose(similarities))
        loss_1_2 = keras.losses.sparse_categorical_crossentropy(labels, similarities, from_logits=True)
        loss_2_1 = keras.losses.sparse_categorical_crossentropy(
            labels, ops.transpose(similarities), from_logits=True
        )
        return (loss_1_2 + loss_2_1) / 2

    def train_step(self, data):
        images, labels = data
        with tf.GradientTape() as tape:
            one, two = self.encoder(images * 0.9, training=True), self.encoder(ops.flip(images, axis=1))
            loss = self.contrastive_loss(self.projection_head(one), self.projection_head(two))
        weights = self.encoder.trainable_weights + self.projection_head.trainable_weights
        gradients = tape.gradient(loss, weights)
        self.contrastive_optimizer.apply_gradients(zip(gradients, weights))
        self.contrastive_loss_tracker.update_state(loss)
        with tf.GradientTape() as tape:
            logits = self.linear_probe(self.encoder(images, training=False))
            probe_loss = self.probe_loss(labels, logits)
        gradients = tape.gradient(probe_loss, self.linear_probe.trainable_weights)
        self.probe_optimizer.apply_gradients(zip(gradients, self.linear_probe.trainable_weights))
        self.probe_accuracy.update_state(labels, logits)
        return {m.name: m.result() for m in self.metrics}


model = ContrastiveModel()
model.compile(keras.optimizers.SGD(0.001), keras.optimizers.SGD(0.01))
history = model.fit(x, y, batch_size=64, epochs=1, verbose=0)
