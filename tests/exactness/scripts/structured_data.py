"""Heart disease from numbers and categories, by Keras' FeatureSpace."""

import keras
import numpy as np
import tensorflow as tf
from keras.utils import FeatureSpace

keras.utils.set_random_seed(32)
rows = 640
table = {
    "age": np.random.randint(30, 80, rows),
    "chol": np.random.normal(240, 40, rows).astype("float32"),
    "cp": np.random.randint(0, 4, rows),
    "thal": np.random.choice(["fixed", "normal", "reversible"], rows),
}
target = (table["age"] > 55).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((table, target)).shuffle(rows, seed=1)
train_ds, val_ds = dataset.take(512).batch(64), dataset.skip(512).batch(64)
feature_space = FeatureSpace(
    features={
        "cp": FeatureSpace.integer_categorical(num_oov_indices=0),
        "thal": FeatureSpace.string_categorical(num_oov_indices=0),
        "age": FeatureSpace.float_discretized(num_bins=10),
        "chol": FeatureSpace.float_normalized(),
    },
    crosses=[FeatureSpace.cross(feature_names=("cp", "thal"), crossing_dim=16)],
    output_mode="concat",
)
feature_space.adapt(train_ds.map(lambda x, _: x))
encoded_features = feature_space.get_encoded_features()
x = keras.layers.Dense(16, activation="relu")(encoded_features)
training_model = keras.Model(encoded_features, keras.layers.Dense(1, activation="sigmoid")(x))
training_model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
prepared = train_ds.map(lambda x, y: (feature_space(x), y), num_parallel_calls=tf.data.AUTOTUNE)
validation = val_ds.map(lambda x, y: (feature_space(x), y), num_parallel_calls=tf.data.AUTOTUNE)
history = training_model.fit(prepared, epochs=2, validation_data=validation, verbose=0)
