"""Pictures cut into patches, and attention between them."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(28)
x = np.random.rand(640, 12, 12, 3).astype("float32")
y = (x.mean((1, 2, 3)) > 0.5).astype("int32")
patch_size, num_patches, projection_dim = 4, 9, 8


class Patches(layers.Layer):
    def call(self, images):
        shape = ops.shape(images)
        patches = ops.image.extract_patches(images, size=patch_size)
        return ops.reshape(patches, (shape[0], num_patches, patch_size * patch_size * shape[3]))


class PatchEncoder(layers.Layer):
    def __init__(self):
        super().__init__()
        self.projection = layers.Dense(units=projection_dim)
        self.position_embedding = layers.Embedding(num_patches, projection_dim)

    def call(self, patch):
        positions = ops.expand_dims(ops.arange(start=0, stop=num_patches, step=1), axis=0)
        return self.projection(patch) + self.position_embedding(positions)


inputs = keras.Input(shape=(12, 12, 3))
augmentation = keras.Sequential([layers.Normalization(), layers.Resizing(12, 12)])
augmentation.layers[0].adapt(x)
encoded = PatchEncoder()(Patches()(augmentation(inputs)))
for _ in range(2):
    x1 = layers.LayerNormalization(epsilon=1e-6)(encoded)
    attended = layers.MultiHeadAttention(num_heads=2, key_dim=projection_dim)(x1, x1)
    x2 = layers.Add()([attended, encoded])
    x3 = layers.Dense(16, activation=keras.activations.gelu)(layers.LayerNormalization(epsilon=1e-6)(x2))
    encoded = layers.Add()([layers.Dense(projection_dim)(x3), x2])
representation = layers.Flatten()(layers.LayerNormalization(epsilon=1e-6)(encoded))
model = keras.Model(inputs, layers.Dense(2)(representation))
model.compile(
    optimizer=keras.optimizers.AdamW(learning_rate=0.001, weight_decay=0.0001),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[
        keras.metrics.SparseCategoricalAccuracy(name="accuracy"),
        keras.metrics.SparseTopKCategoricalAccuracy(1, name="top"),
    ],
)
history = model.fit(x=x, y=y, batch_size=64, epochs=1, validation_split=0.1, verbose=0)
