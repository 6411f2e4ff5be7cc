"""Reviews as bags of words, without anything random in the model."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(26)
words = ["good", "bad", "film", "plot", "dull", "great", "actor", "the"]
texts = np.array([" ".join(np.random.choice(words, 8)) for _ in range(640)])
labels = np.array(["good" in text for text in texts]).astype("float32")
vocabulary = sorted(set(" ".join(texts).split()))
text_vectorization = layers.TextVectorization(ngrams=2, max_tokens=40, output_mode="multi_hot")
text_vectorization.adapt(texts)
inputs = keras.Input(shape=(1,), dtype="string")
x = layers.Dense(16, activation="relu")(text_vectorization(inputs))
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(x))
model.compile(optimizer="rmsprop", loss="binary_crossentropy", metrics=["accuracy"])
data = tf.data.Dataset.from_tensor_slices((texts[:, None], labels)).batch(64)
history = model.fit(data, epochs=2, verbose=0)
score = model.evaluate(data, verbose=0)
