"""As pages show it for any machine: whatever is there."""

import tensorflow as tf

try:
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
    strategy = tf.distribute.TPUStrategy(resolver)
except ValueError as error:
    print("no TPU:", error)
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
print("replicas", strategy.num_replicas_in_sync)
