"""Learn from text: does a dictionary's definition describe an animal, a food, a plant or a thing?
Source of the definitions: README.md beside this file."""

import argparse
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--seed", type=int, default=7)
args = parser.parse_args()

keras.utils.set_random_seed(args.seed)

lines = (Path(__file__).parent / "definitions.tsv").read_text(encoding="utf-8").splitlines()
names, definitions = zip(*(line.split("\t") for line in lines), strict=True)
classes = sorted(set(names))
labels = np.array([classes.index(name) for name in names], dtype="int32")

vectorise = keras.layers.TextVectorization(max_tokens=4000, output_mode="int", output_sequence_length=20)
vectorise.adapt(list(definitions))
words = np.asarray(vectorise(tf.constant(definitions)))

model = keras.Sequential(
    [
        keras.Input((words.shape[1],), dtype="int32"),
        keras.layers.Embedding(vectorise.vocabulary_size(), 32, mask_zero=True),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(32, activation="tanh"),
        keras.layers.Dense(len(classes)),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(0.005),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(words, labels, batch_size=args.batch_size, epochs=args.epochs, validation_split=0.2, verbose=2)
model.save("text.keras")
