"""Pairs of digits: the same or not, by a contrastive loss."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(5)
x = np.random.rand(640, 12, 12).astype("float32")
partner = np.random.permutation(640)
labels = (np.arange(640) % 2).astype("float32")
other = np.where(labels[:, None, None] == 1, x[partner], np.clip(x + 0.05, 0, 1)).astype("float32")


def euclidean_distance(vects):
    x, y = vects
    return ops.sqrt(ops.maximum(ops.sum(ops.square(x - y), axis=1, keepdims=True), keras.backend.epsilon()))


inputs = keras.Input((12, 12, 1))
h = layers.Conv2D(4, (5, 5), activation="tanh")(inputs)
h = layers.AveragePooling2D(pool_size=(2, 2))(h)
embedding_network = keras.Model(inputs, layers.Dense(10, activation="tanh")(layers.Flatten()(h)))
one, two = keras.Input((12, 12, 1)), keras.Input((12, 12, 1))
merged = layers.Lambda(euclidean_distance, output_shape=(1,))(
    [embedding_network(one), embedding_network(two)]
)
siamese = keras.Model([one, two], layers.Dense(1, activation="sigmoid")(merged))


def loss(margin=1):
    def contrastive_loss(y_true, y_pred):
        square_pred = ops.square(y_pred)
        margin_square = ops.square(ops.maximum(margin - y_pred, 0))
        return ops.mean((1 - y_true) * square_pred + y_true * margin_square)

    return contrastive_loss


siamese.compile(loss=loss(margin=1), optimizer="RMSprop", metrics=["accuracy"])
history = siamese.fit([x, other], labels, validation_split=0.2, batch_size=64, epochs=2, verbose=0)
results = siamese.evaluate([x, other], labels, verbose=0)
