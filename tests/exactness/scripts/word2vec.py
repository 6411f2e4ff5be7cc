"""Skip-grams with negative samples."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(41)
vocab_size, num_ns = 40, 4
targets = np.random.randint(1, vocab_size, 1280)
contexts = np.concatenate(
    [((targets * 3) % vocab_size)[:, None], np.random.randint(1, vocab_size, (1280, num_ns))], axis=1
)
labels = np.tile(np.array([1] + [0] * num_ns, "int64"), (1280, 1))
dataset = tf.data.Dataset.from_tensor_slices(((targets, contexts), labels))
dataset = dataset.shuffle(10000).batch(64, drop_remainder=True).cache().prefetch(buffer_size=2)


class Word2Vec(keras.Model):
    def __init__(self, vocab_size, embedding_dim):
        super().__init__()
        self.target_embedding = layers.Embedding(vocab_size, embedding_dim, name="w2v_embedding")
        self.context_embedding = layers.Embedding(vocab_size, embedding_dim)

    def call(self, pair):
        target, context = pair
        word_emb = self.target_embedding(target)
        context_emb = self.context_embedding(context)
        return tf.einsum("be,bce->bc", word_emb, context_emb)


def custom_loss(y_true, x_logit):
    return tf.nn.sigmoid_cross_entropy_with_logits(logits=x_logit, labels=tf.cast(y_true, tf.float32))


word2vec = Word2Vec(vocab_size, 16)
word2vec.compile(optimizer="adam", loss=custom_loss, metrics=["accuracy"])
history = word2vec.fit(dataset, epochs=1, verbose=0)
