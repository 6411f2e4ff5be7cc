"""Papers that cite each other: batches of nodes, the graph held by the model."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(34)
num_nodes = 200
node_features = tf.constant(np.random.normal(size=(num_nodes, 6)), tf.float32)
edges = np.random.randint(num_nodes, size=(2, 800))
adjacency = np.eye(num_nodes, dtype="float32")
adjacency[edges[0], edges[1]] = 1.0
adjacency = tf.constant(adjacency / adjacency.sum(axis=1, keepdims=True))
labels = np.argmax(node_features.numpy()[:, :3], axis=1)


class GNNNodeClassifier(keras.Model):
    def __init__(self, node_features, adjacency, num_classes):
        super().__init__()
        self.node_features = node_features
        self.adjacency = adjacency
        self.preprocess = layers.Dense(8, activation="gelu")
        self.conv = layers.Dense(8, activation="gelu")
        self.compute_logits = layers.Dense(num_classes, name="logits")

    def call(self, input_node_indices):
        x = self.preprocess(self.node_features)
        x = x + self.conv(tf.matmul(self.adjacency, x))
        return self.compute_logits(tf.gather(x, input_node_indices))


model = GNNNodeClassifier(node_features, adjacency, 3)
model.compile(
    optimizer=keras.optimizers.Adam(0.01),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[keras.metrics.SparseCategoricalAccuracy(name="acc")],
)
early_stopping = keras.callbacks.EarlyStopping(monitor="val_acc", patience=50, restore_best_weights=True)
nodes = np.random.permutation(num_nodes)
history = model.fit(
    x=nodes,
    y=labels[nodes],
    epochs=3,
    batch_size=64,
    validation_split=0.15,
    callbacks=[early_stopping],
    verbose=0,
)
