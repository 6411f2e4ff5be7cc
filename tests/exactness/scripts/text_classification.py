"""Reviews as text: a vocabulary, an embedding, convolutions with dropout."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(25)
words = ["good", "bad", "film", "plot", "dull", "great", "actor", "the"]
texts = np.array([" ".join(np.random.choice(words, 8)) for _ in range(640)])
labels = np.array(["good" in text for text in texts]).astype("float32")
raw = tf.data.Dataset.from_tensor_slices((texts, labels)).shuffle(640, seed=1).batch(64)
vectorize_layer = layers.TextVectorization(max_tokens=20, output_mode="int", output_sequence_length=10)
vectorize_layer.adapt(raw.map(lambda x, y: x))
train_ds = raw.map(lambda x, y: (vectorize_layer(x), y)).cache().prefetch(2)

inputs = keras.Input(shape=(None,), dtype="int64")
x = layers.Embedding(20, 16)(inputs)
x = layers.Dropout(0.5)(x)
x = layers.Conv1D(16, 3, padding="valid", activation="relu", strides=1)(x)
x = layers.GlobalMaxPooling1D()(x)
x = layers.Dense(16, activation="relu")(x)
x = layers.Dropout(0.5)(x)
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid", name="predictions")(x))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
history = model.fit(train_ds, epochs=2, verbose=0)
