"""Trains by fit in a MultiWorkerMirroredStrategy of its own, as pages on the web show it."""

import argparse
import time

import keras
import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--alone", action="store_true", help="without any strategy, for comparison")
parser.add_argument("--slow", type=float, default=0.0)
parser.add_argument("--own-class", action="store_true")
args = parser.parse_args()


class Mine(tf.distribute.MultiWorkerMirroredStrategy):
    pass


strategy = tf.distribute.get_strategy()
if not args.alone:
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = (Mine if args.own_class else tf.distribute.MultiWorkerMirroredStrategy)(
        cluster_resolver=resolver
    )
devices = () if args.alone else strategy.extended.worker_devices
print("replicas", strategy.num_replicas_in_sync, [device[-5:] for device in devices])

keras.utils.set_random_seed(5)
rng = np.random.default_rng(0)
x = rng.normal(size=(72, 4)).astype("float32")
y = rng.normal(size=(72, 1)).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(72).batch(16)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
dataset = dataset.with_options(options)

with strategy.scope():
    model = keras.Sequential(
        [keras.Input((4,)), keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(1)]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.01, clipnorm=0.5), loss="mse", metrics=["mae"])


class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        time.sleep(args.slow)


callbacks = [Slow()] if args.slow else []
model.fit(dataset, epochs=args.epochs, verbose=0, callbacks=callbacks)  # a dataset in batches of its own
model.fit(x, y, batch_size=24, epochs=1, validation_split=0.25, verbose=0)  # arrays
if not args.alone:
    dataset = strategy.experimental_distribute_dataset(dataset)
model.fit(dataset, epochs=1, verbose=0)
print("loss", f"{model.evaluate(x, y, verbose=0, return_dict=True)['loss']:.5f}")
