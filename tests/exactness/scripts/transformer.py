"""Classifies texts by a transformer block, with the usual dropout."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(27)
vocab_size, maxlen = 50, 12
x = np.random.randint(1, vocab_size, (640, maxlen))
y = (x[:, 0] > 25).astype("int32")


class TransformerBlock(layers.Layer):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
        super().__init__()
        self.att = layers.MultiHeadAttention(num_heads=num_heads, key_dim=embed_dim)
        self.ffn = keras.Sequential([layers.Dense(ff_dim, activation="relu"), layers.Dense(embed_dim)])
        self.layernorm1 = layers.LayerNormalization(epsilon=1e-6)
        self.layernorm2 = layers.LayerNormalization(epsilon=1e-6)
        self.dropout1 = layers.Dropout(rate)
        self.dropout2 = layers.Dropout(rate)

    def call(self, inputs):
        attn_output = self.dropout1(self.att(inputs, inputs))
        out1 = self.layernorm1(inputs + attn_output)
        return self.layernorm2(out1 + self.dropout2(self.ffn(out1)))


class TokenAndPositionEmbedding(layers.Layer):
    def __init__(self, maxlen, vocab_size, embed_dim):
        super().__init__()
        self.token_emb = layers.Embedding(input_dim=vocab_size, output_dim=embed_dim)
        self.pos_emb = layers.Embedding(input_dim=maxlen, output_dim=embed_dim)

    def call(self, x):
        return self.token_emb(x) + self.pos_emb(ops.arange(start=0, stop=ops.shape(x)[-1], step=1))


inputs = layers.Input(shape=(maxlen,))
h = TokenAndPositionEmbedding(maxlen, vocab_size, 8)(inputs)
h = TransformerBlock(8, 2, 16)(h)
h = layers.Dropout(0.1)(layers.GlobalAveragePooling1D()(h))
model = keras.Model(inputs, layers.Dense(2, activation="softmax")(h))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x, y, batch_size=32, epochs=1, validation_split=0.2, verbose=0)
