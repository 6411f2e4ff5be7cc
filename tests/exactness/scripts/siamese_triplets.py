"""Triplets: an anchor is nearer to its positive than to its negative."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(4)
anchors = np.random.normal(size=(1280, 8)).astype("float32")
positives = anchors + 0.1 * np.random.normal(size=anchors.shape).astype("float32")
negatives = np.random.permutation(anchors)

embedding = keras.Sequential([keras.Input((8,)), layers.Dense(16, "relu"), layers.Dense(4)])


class DistanceLayer(layers.Layer):
    def call(self, anchor, positive, negative):
        ap = ops.sum(ops.square(anchor - positive), -1)
        return ap, ops.sum(ops.square(anchor - negative), -1)


a, p, n = (
    keras.Input((8,), name="anchor"),
    keras.Input((8,), name="positive"),
    keras.Input((8,), name="negative"),
)
siamese_network = keras.Model([a, p, n], DistanceLayer()(embedding(a), embedding(p), embedding(n)))


class SiameseModel(keras.Model):
    def __init__(self, siamese_network, margin=0.5):
        super().__init__()
        self.siamese_network = siamese_network
        self.margin = margin
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs):
        return self.siamese_network(inputs)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self._compute_loss(data)
        gradients = tape.gradient(loss, self.siamese_network.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.siamese_network.trainable_weights))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, data):
        self.loss_tracker.update_state(self._compute_loss(data))
        return {"loss": self.loss_tracker.result()}

    def _compute_loss(self, data):
        ap_distance, an_distance = self.siamese_network(data)
        return ops.maximum(ap_distance - an_distance + self.margin, 0.0)

    @property
    def metrics(self):
        return [self.loss_tracker]


dataset = tf.data.Dataset.zip(tuple(map(tf.data.Dataset.from_tensor_slices, (anchors, positives, negatives))))
dataset = dataset.shuffle(1024)
train = dataset.take(1024).batch(64, drop_remainder=False).prefetch(8)
val = dataset.skip(1024).batch(64, drop_remainder=False).prefetch(8)
siamese_model = SiameseModel(siamese_network)
siamese_model.compile(optimizer=keras.optimizers.SGD(0.001))
history = siamese_model.fit(train, epochs=1, validation_data=val, verbose=0)
