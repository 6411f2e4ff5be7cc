"""Words that were hidden are guessed from the others."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(38)
vocab_size, max_len, mask_token_id = 30, 12, 29
encoded = np.random.randint(1, mask_token_id, (640, max_len))


def get_masked_input_and_labels(encoded_texts):
    inp_mask = np.random.rand(*encoded_texts.shape) < 0.15
    inp_mask[encoded_texts <= 2] = False
    labels = np.where(inp_mask, encoded_texts, -1)
    masked = np.where(inp_mask & (np.random.rand(*encoded_texts.shape) < 0.90), mask_token_id, encoded_texts)
    sample_weights = np.ones(labels.shape)
    sample_weights[labels == -1] = 0
    return masked, np.copy(encoded_texts), sample_weights


x, y, weights = get_masked_input_and_labels(encoded)
mlm_ds = tf.data.Dataset.from_tensor_slices((x, y, weights)).shuffle(1000).batch(64)
loss_fn = keras.losses.SparseCategoricalCrossentropy(reduction=None)
loss_tracker = keras.metrics.Mean(name="loss")


class MaskedLanguageModel(keras.Model):
    def train_step(self, inputs):
        features, labels, sample_weight = inputs
        with tf.GradientTape() as tape:
            predictions = self(features, training=True)
            loss = loss_fn(labels, predictions, sample_weight=sample_weight)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        loss_tracker.update_state(loss, sample_weight=sample_weight)
        return {"loss": loss_tracker.result()}

    @property
    def metrics(self):
        return [loss_tracker]


inputs = layers.Input((max_len,), dtype="int64")
embeddings = layers.Embedding(vocab_size, 16)(inputs)
embeddings = embeddings + layers.Embedding(max_len, 16)(ops.arange(start=0, stop=max_len, step=1))
attention = layers.MultiHeadAttention(num_heads=2, key_dim=8)(embeddings, embeddings, embeddings)
normed = layers.LayerNormalization(epsilon=1e-6)(embeddings + attention)
mlm_model = MaskedLanguageModel(inputs, layers.Dense(vocab_size, activation="softmax")(normed))
mlm_model.compile(optimizer=keras.optimizers.SGD(learning_rate=0.001))
history = mlm_model.fit(mlm_ds, epochs=1, verbose=0)
