"""Characters of one language to another: an encoder's state begins the decoder."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(11)
input_texts = ["".join(np.random.choice(list("abcdef"), 5)) for _ in range(640)]
target_texts = ["\t" + text[::-1] + "\n" for text in input_texts]
input_tokens = {char: i for i, char in enumerate(sorted(set("".join(input_texts))))}
target_tokens = {char: i for i, char in enumerate(sorted(set("".join(target_texts))))}
encoder_input = np.zeros((640, 5, len(input_tokens)), "float32")
decoder_input = np.zeros((640, 7, len(target_tokens)), "float32")
decoder_target = np.zeros((640, 7, len(target_tokens)), "float32")
for i, (source, target) in enumerate(zip(input_texts, target_texts)):
    for t, char in enumerate(source):
        encoder_input[i, t, input_tokens[char]] = 1.0
    for t, char in enumerate(target):
        decoder_input[i, t, target_tokens[char]] = 1.0
        if t > 0:
            decoder_target[i, t - 1, target_tokens[char]] = 1.0

encoder_inputs = keras.Input((None, len(input_tokens)))
_, state_h, state_c = layers.LSTM(16, return_state=True)(encoder_inputs)
decoder_inputs = keras.Input((None, len(target_tokens)))
decoder_outputs, _, _ = layers.LSTM(16, return_sequences=True, return_state=True)(
    decoder_inputs, initial_state=[state_h, state_c]
)
outputs = layers.Dense(len(target_tokens), activation="softmax")(decoder_outputs)
model = keras.Model([encoder_inputs, decoder_inputs], outputs)
model.compile(optimizer="rmsprop", loss="categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    [encoder_input, decoder_input], decoder_target, batch_size=64, epochs=2, validation_split=0.2, verbose=0
)
