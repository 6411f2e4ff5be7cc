"""A student learns a teacher's soft answers beside the labels."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(8)
x = np.random.normal(size=(1280, 10)).astype("float32")
y = np.argmax(x[:, :4] + x[:, 4:8], axis=1).astype("int32")


class Distiller(keras.Model):
    def __init__(self, student, teacher):
        super().__init__()
        self.teacher = teacher
        self.student = student

    def compile(self, optimizer, metrics, student_loss_fn, distillation_loss_fn, alpha=0.1, temperature=3):
        super().compile(optimizer=optimizer, metrics=metrics)
        self.student_loss_fn = student_loss_fn
        self.distillation_loss_fn = distillation_loss_fn
        self.alpha = alpha
        self.temperature = temperature

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, allow_empty=False, training=True):
        teacher_pred = self.teacher(x, training=False)
        student_loss = self.student_loss_fn(y, y_pred)
        distillation_loss = self.distillation_loss_fn(
            ops.softmax(teacher_pred / self.temperature, axis=1),
            ops.softmax(y_pred / self.temperature, axis=1),
        ) * (self.temperature**2)
        return self.alpha * student_loss + (1 - self.alpha) * distillation_loss

    def call(self, x):
        return self.student(x)


def mlp(units, name):
    return keras.Sequential(
        [keras.Input((10,)), layers.Dense(units), layers.LeakyReLU(), layers.Dense(4)], name=name
    )


teacher, student = mlp(32, "teacher"), mlp(8, "student")
sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accuracy = [keras.metrics.SparseCategoricalAccuracy()]
teacher.compile(optimizer=keras.optimizers.SGD(0.1), loss=sparse, metrics=accuracy)
teacher.fit(x, y, batch_size=64, verbose=0)
distiller = Distiller(student=student, teacher=teacher)
distiller.compile(
    optimizer=keras.optimizers.SGD(0.1),
    metrics=[keras.metrics.SparseCategoricalAccuracy()],
    student_loss_fn=sparse,
    distillation_loss_fn=keras.losses.KLDivergence(),
)
history = distiller.fit(x, y, batch_size=64, verbose=0)
scores = distiller.evaluate(x, y, return_dict=True, verbose=0)
