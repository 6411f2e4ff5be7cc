"""Deep Q-learning with a replay memory, trained by train_on_batch."""

import random

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(10)


def create_q_model():
    model = keras.Sequential([keras.Input((2,)), layers.Dense(16, "relu"), layers.Dense(2)])
    model.compile(keras.optimizers.SGD(0.01, clipnorm=1.0), loss="huber")
    return model


model, model_target = create_q_model(), create_q_model()
model_target.set_weights(model.get_weights())
memory, state, losses = [], np.zeros(2, "float32"), []
for frame in range(150):
    action = random.randrange(2)
    after = np.array([0.9 * state[0] + state[1], state[1] + (0.1 if action else -0.1)], "float32")
    memory.append((state, action, 1.0 - abs(after[0]), after))
    state = after
    if len(memory) >= 64 and frame % 10 == 0:
        batch = random.sample(memory, 64)
        states, actions, rewards, nexts = map(np.array, zip(*batch))
        future = model_target.predict(nexts, verbose=0)
        targets = model.predict(states, verbose=0)
        targets[np.arange(64), actions] = rewards + 0.99 * future.max(axis=1)
        losses.append(float(model.train_on_batch(states, targets)))
    if frame % 50 == 0:
        model_target.set_weights(model.get_weights())
