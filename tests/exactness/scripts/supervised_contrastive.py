"""An encoder trained by a supervised contrastive loss, then a classifier on it, frozen."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(7)
x = np.random.normal(size=(1280, 16)).astype("float32")
y = np.argmax(x[:, :3], axis=1).astype("int32")


class SupervisedContrastiveLoss(keras.losses.Loss):
    def __init__(self, temperature=1, name=None):
        super().__init__(name=name)
        self.temperature = temperature

    def call(self, labels, feature_vectors):
        vectors = ops.normalize(feature_vectors, axis=1)
        logits = ops.matmul(vectors, ops.transpose(vectors)) / self.temperature
        labels = ops.reshape(labels, (-1, 1))
        positive = ops.cast(ops.equal(labels, ops.transpose(labels)), "float32")
        logs = logits - ops.logsumexp(logits, axis=1, keepdims=True)
        return -ops.sum(positive * logs, axis=1) / ops.sum(positive, axis=1)


inputs = keras.Input((16,))
encoder = keras.Model(inputs, layers.Dense(8)(layers.Dense(16, "relu")(inputs)))
encoder_with_head = keras.Model(inputs, layers.Dense(8, activation="relu")(encoder(inputs)))
encoder_with_head.compile(keras.optimizers.SGD(0.05), loss=SupervisedContrastiveLoss(0.5))
history = encoder_with_head.fit(x, y, batch_size=64, epochs=1, verbose=0)

for layer in encoder.layers:
    layer.trainable = False
classifier = keras.Model(inputs, layers.Dense(3, activation="softmax")(encoder(inputs)))
classifier.compile(
    keras.optimizers.SGD(0.05),
    loss="sparse_categorical_crossentropy",
    metrics=["sparse_categorical_accuracy"],
)
second_history = classifier.fit(x, y, batch_size=64, epochs=1, verbose=0)
accuracy = classifier.evaluate(x, y, verbose=0)[1]
