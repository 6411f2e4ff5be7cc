"""Pictures and their texts find each other, as in CLIP."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(44)
images = np.random.normal(size=(640, 16)).astype("float32")
captions = np.argsort(images[:, :6], axis=1).astype("int32")


def tower(inputs, x):
    x = layers.Dense(8, activation=tf.nn.gelu)(x)
    return keras.Model(inputs, layers.LayerNormalization()(layers.Dense(8)(x)))


image_input, text_input = keras.Input((16,)), keras.Input((6,), dtype="int32")
vision_encoder = tower(image_input, image_input)
text_encoder = tower(text_input, layers.Flatten()(layers.Embedding(6, 4)(text_input)))


class DualEncoder(keras.Model):
    def __init__(self, text_encoder, image_encoder, temperature=1.0):
        super().__init__()
        self.text_encoder = text_encoder
        self.image_encoder = image_encoder
        self.temperature = temperature
        self.loss_tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.loss_tracker]

    def call(self, features, training=False):
        captions = self.text_encoder(features["caption"], training=training)
        return captions, self.image_encoder(features["image"], training=training)

    def dual_loss(self, caption_embeddings, image_embeddings):
        logits = tf.matmul(caption_embeddings, image_embeddings, transpose_b=True) / self.temperature
        images_similarity = tf.matmul(image_embeddings, image_embeddings, transpose_b=True)
        captions_similarity = tf.matmul(caption_embeddings, caption_embeddings, transpose_b=True)
        targets = keras.activations.softmax(
            (captions_similarity + images_similarity) / (2 * self.temperature)
        )
        captions_loss = keras.losses.categorical_crossentropy(y_true=targets, y_pred=logits, from_logits=True)
        images_loss = keras.losses.categorical_crossentropy(
            y_true=tf.transpose(targets), y_pred=tf.transpose(logits), from_logits=True
        )
        return (captions_loss + images_loss) / 2

    def train_step(self, features):
        with tf.GradientTape() as tape:
            loss = self.dual_loss(*self(features, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    def test_step(self, features):
        self.loss_tracker.update_state(self.dual_loss(*self(features, training=False)))
        return {"loss": self.loss_tracker.result()}


dual_encoder = DualEncoder(text_encoder, vision_encoder, temperature=0.5)
dual_encoder.compile(optimizer=keras.optimizers.SGD(0.001))
dataset = tf.data.Dataset.from_tensor_slices({"image": images, "caption": captions})
history = dual_encoder.fit(
    dataset.take(512).batch(64), epochs=1, validation_data=dataset.skip(512).batch(64), verbose=0
)
