"""Words for a picture, word after word; what is padded does not count."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(30)
features = np.random.normal(size=(640, 16)).astype("float32")
lengths = np.random.randint(3, 8, 640)
captions = np.random.randint(1, 20, (640, 8))
captions = np.where(np.arange(8)[None, :] < lengths[:, None], captions, 0).astype("int32")


class ImageCaptioningModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.picture = layers.Dense(16, activation="relu")
        self.embedding = layers.Embedding(20, 16)
        self.decoder = layers.GRU(16, return_sequences=True)
        self.words = layers.Dense(20, activation="softmax")
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.acc_tracker = keras.metrics.Mean(name="accuracy")

    def call(self, inputs):
        image, tokens = inputs
        return self.words(self.decoder(self.embedding(tokens), initial_state=self.picture(image)))

    def calculate_loss(self, y_true, y_pred, mask):
        loss = self.loss(y_true, y_pred)
        mask = ops.cast(mask, dtype=loss.dtype)
        return ops.sum(loss * mask) / ops.sum(mask)

    def calculate_accuracy(self, y_true, y_pred, mask):
        accuracy = ops.equal(y_true, ops.cast(ops.argmax(y_pred, axis=2), y_true.dtype))
        accuracy = ops.cast(ops.logical_and(mask, accuracy), dtype="float32")
        return ops.sum(accuracy) / ops.sum(ops.cast(mask, dtype="float32"))

    def train_step(self, batch_data):
        image, seq = batch_data
        inp, true = seq[:, :-1], seq[:, 1:]
        mask = ops.not_equal(true, 0)
        with tf.GradientTape() as tape:
            pred = self([image, inp], training=True)
            loss = self.calculate_loss(true, pred, mask)
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        self.acc_tracker.update_state(self.calculate_accuracy(true, pred, mask))
        return {"loss": self.loss_tracker.result(), "acc": self.acc_tracker.result()}

    @property
    def metrics(self):
        return [self.loss_tracker, self.acc_tracker]


model = ImageCaptioningModel()
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=False, reduction=None)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss=cross_entropy)
history = model.fit(tf.data.Dataset.from_tensor_slices((features, captions)).batch(64), epochs=1, verbose=0)
