"""Anchors and positives as two inputs; an anchor is to be nearest to its own positive."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(36)
anchors = np.random.normal(size=(640, 12)).astype("float32")
positives = (anchors + 0.2 * np.random.normal(size=anchors.shape)).astype("float32")


class EmbeddingModel(keras.Model):
    def train_step(self, data):
        anchors, positives = data
        with tf.GradientTape() as tape:
            anchor_embeddings = self(anchors, training=True)
            positive_embeddings = self(positives, training=True)
            similarities = ops.einsum("ae,pe->ap", anchor_embeddings, positive_embeddings)
            similarities /= 0.2
            sparse_labels = ops.arange(ops.shape(anchors)[0])
            loss = self.compute_loss(y=sparse_labels, y_pred=similarities)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(sparse_labels, similarities)
        return {m.name: m.result() for m in self.metrics}


inputs = layers.Input(shape=(12,))
embeddings = layers.UnitNormalization()(layers.Dense(8)(layers.Dense(16, activation="relu")(inputs)))
model = EmbeddingModel(inputs, embeddings)
model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=1e-3),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
)
history = model.fit(anchors, positives, epochs=1, batch_size=64, verbose=0)
