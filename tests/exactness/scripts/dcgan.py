"""A DCGAN whose train_step is a tf.function of its own, with noise for a fixed batch."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(51)
BATCH_SIZE, noise_dim = 64, 4
images = np.random.rand(640, 8, 8, 1).astype("float32") * 2 - 1
train_dataset = tf.data.Dataset.from_tensor_slices(images).shuffle(640).batch(BATCH_SIZE)

generator = keras.Sequential(
    [
        keras.Input((noise_dim,)),
        layers.Dense(16 * 8),
        layers.Reshape((4, 4, 8)),
        layers.Conv2DTranspose(1, 3, 2, "same"),
    ]
)
discriminator = keras.Sequential(
    [
        keras.Input((8, 8, 1)),
        layers.Conv2D(8, 3, 2, "same"),
        layers.LeakyReLU(),
        layers.Flatten(),
        layers.Dense(1),
    ]
)
cross_entropy = keras.losses.BinaryCrossentropy(from_logits=True)


def discriminator_loss(real_output, fake_output):
    real_loss = cross_entropy(tf.ones_like(real_output), real_output)
    return real_loss + cross_entropy(tf.zeros_like(fake_output), fake_output)


class DCGAN(keras.Model):
    def __init__(self, generator, discriminator):
        super().__init__()
        self.generator, self.discriminator = generator, discriminator
        self.generator_optimizer = keras.optimizers.Adam(1e-4)
        self.discriminator_optimizer = keras.optimizers.Adam(1e-4)

    @tf.function
    def train_step(self, images):
        noise = tf.random.normal([BATCH_SIZE, noise_dim])
        with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
            generated_images = self.generator(noise, training=True)
            real_output = self.discriminator(images, training=True)
            fake_output = self.discriminator(generated_images, training=True)
            gen_loss = cross_entropy(tf.ones_like(fake_output), fake_output)
            disc_loss = discriminator_loss(real_output, fake_output)
        gen_gradients = gen_tape.gradient(gen_loss, self.generator.trainable_variables)
        disc_gradients = disc_tape.gradient(disc_loss, self.discriminator.trainable_variables)
        self.generator_optimizer.apply_gradients(zip(gen_gradients, self.generator.trainable_variables))
        self.discriminator_optimizer.apply_gradients(
            zip(disc_gradients, self.discriminator.trainable_variables)
        )
        return {"gen_loss": gen_loss, "disc_loss": disc_loss}


gan = DCGAN(generator, discriminator)
gan.compile()
history = gan.fit(train_dataset, epochs=2, verbose=0)
