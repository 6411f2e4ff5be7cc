"""Actor and critic of a cart on a line, by a loop of their own: nothing of it is shared."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(9)
gamma, eps = 0.99, 1e-6
inputs = keras.Input((2,))
common = layers.Dense(16, activation="relu")(inputs)
model = keras.Model(inputs, [layers.Dense(2, activation="softmax")(common), layers.Dense(1)(common)])
optimizer = keras.optimizers.Adam(learning_rate=0.01)
huber_loss = keras.losses.Huber()
running_reward = 0
for _ in range(3):
    state, action_probs, critic_values, rewards = np.zeros(2, "float32"), [], [], []
    with tf.GradientTape() as tape:
        for _ in range(10):
            probs, value = model(state[None])
            critic_values.append(value[0, 0])
            action = np.random.choice(2, p=np.squeeze(probs) / np.sum(probs))
            action_probs.append(ops.log(probs[0, action]))
            state = np.array([state[0] + state[1], state[1] + (0.1 if action else -0.1)], "float32")
            rewards.append(1.0 - abs(state[0]))
        running_reward = 0.05 * sum(rewards) + 0.95 * running_reward
        returns, total = [], 0.0
        for reward in rewards[::-1]:
            total = reward + gamma * total
            returns.insert(0, total)
        returns = (np.array(returns) - np.mean(returns)) / (np.std(returns) + eps)
        actor = [
            -log_prob * (ret - value) for log_prob, value, ret in zip(action_probs, critic_values, returns)
        ]
        critic = [
            huber_loss(tf.expand_dims(value, 0), tf.expand_dims(tf.cast(ret, "float32"), 0))
            for value, ret in zip(critic_values, returns)
        ]
        loss_value = sum(actor) + sum(critic)
    grads = tape.gradient(loss_value, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
