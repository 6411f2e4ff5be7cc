"""A student beside its own moving average, which it is to agree with."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(46)
x = np.random.normal(size=(640, 10)).astype("float32")
y = np.argmax(x[:, :3], axis=1)


def build():
    return keras.Sequential([keras.Input((10,)), layers.Dense(16, "relu"), layers.Dense(3)])


class MeanTeacher(keras.Model):
    def __init__(self):
        super().__init__()
        self.student, self.teacher = build(), build()
        self.teacher.set_weights(self.student.get_weights())
        self.teacher.trainable = False

    def call(self, x):
        return self.student(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            logits = self.student(x, training=True)
            consistency = tf.reduce_mean(
                tf.square(tf.nn.softmax(logits) - tf.nn.softmax(self.teacher(x[:, ::-1])))
            )
            loss = self.compute_loss(x, y, logits) + 0.5 * consistency
        grads = tape.gradient(loss, self.student.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.student.trainable_variables))
        for teacher, student in zip(self.teacher.weights, self.student.weights):
            teacher.assign(0.99 * teacher + 0.01 * student)
        return {**self.compute_metrics(x, y, logits), "consistency": consistency}


model = MeanTeacher()
model.compile(
    keras.optimizers.Adam(0.01),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = model.fit(x, y, batch_size=64, epochs=2, verbose=0)
scores = model.evaluate(x, y, verbose=0)
