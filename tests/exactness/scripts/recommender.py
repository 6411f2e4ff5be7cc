"""Ratings of films from embeddings of users and films; the dot product is one of the whole batch."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(18)
num_users, num_movies = 50, 40
x = np.stack([np.random.randint(num_users, size=1280), np.random.randint(num_movies, size=1280)], axis=1)
y = (((x[:, 0] * 7 + x[:, 1] * 3) % 10) / 10.0).astype("float32")


class RecommenderNet(keras.Model):
    def __init__(self, num_users, num_movies, embedding_size, **kwargs):
        super().__init__(**kwargs)
        embeddings = {
            "embeddings_initializer": "he_normal",
            "embeddings_regularizer": keras.regularizers.l2(1e-6),
        }
        self.user_embedding = layers.Embedding(num_users, embedding_size, **embeddings)
        self.user_bias = layers.Embedding(num_users, 1)
        self.movie_embedding = layers.Embedding(num_movies, embedding_size, **embeddings)
        self.movie_bias = layers.Embedding(num_movies, 1)

    def call(self, inputs):
        user_vector, user_bias = self.user_embedding(inputs[:, 0]), self.user_bias(inputs[:, 0])
        movie_vector, movie_bias = self.movie_embedding(inputs[:, 1]), self.movie_bias(inputs[:, 1])
        dot_user_movie = ops.tensordot(user_vector, movie_vector, 2)
        return ops.nn.sigmoid(dot_user_movie + user_bias + movie_bias)


model = RecommenderNet(num_users, num_movies, 8)
model.compile(loss=keras.losses.BinaryCrossentropy(), optimizer=keras.optimizers.Adam(learning_rate=0.001))
history = model.fit(
    x=x[:1152], y=y[:1152], batch_size=64, epochs=1, verbose=0, validation_data=(x[1152:], y[1152:])
)
ratings = model.predict(x[:64], batch_size=64, verbose=0).flatten()
