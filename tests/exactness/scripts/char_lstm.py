"""Text by characters, written on after each epoch."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(37)
text = "the quick brown fox jumps over the lazy dog and the hen " * 12
chars = sorted(set(text))
char_indices = {c: i for i, c in enumerate(chars)}
maxlen, step = 10, 1
sentences = [text[i : i + maxlen] for i in range(0, len(text) - maxlen, step)]
x = np.zeros((len(sentences), maxlen, len(chars)), dtype="bool")
y = np.zeros((len(sentences), len(chars)), dtype="bool")
for i, sentence in enumerate(sentences):
    for t, char in enumerate(sentence):
        x[i, t, char_indices[char]] = 1
    y[i, char_indices[text[i + maxlen]]] = 1

model = keras.Sequential(
    [keras.Input((maxlen, len(chars))), layers.LSTM(24), layers.Dense(len(chars), activation="softmax")]
)
model.compile(loss="categorical_crossentropy", optimizer=keras.optimizers.RMSprop(learning_rate=0.01))


def sample(preds, temperature=1.0):
    preds = np.log(np.asarray(preds).astype("float64")) / temperature
    exp_preds = np.exp(preds)
    return np.argmax(np.random.multinomial(1, exp_preds / np.sum(exp_preds), 1))


histories, written = [], []
for epoch in range(2):
    histories.append(model.fit(x, y, batch_size=64, epochs=1, verbose=0).history["loss"][0])
    sentence = text[:maxlen]
    for _ in range(4):
        x_pred = np.zeros((1, maxlen, len(chars)))
        for t, char in enumerate(sentence):
            x_pred[0, t, char_indices[char]] = 1.0
        next_index = sample(model.predict(x_pred, verbose=0)[0], 0.5)
        sentence = sentence[1:] + chars[next_index]
        written.append(next_index)
