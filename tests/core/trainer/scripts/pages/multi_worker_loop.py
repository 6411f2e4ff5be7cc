"""TensorFlow's guide "Custom training loop with Keras and MultiWorkerMirroredStrategy", main.py and mnist.py.
Changed to run: noise instead of MNIST and fewer steps, num_workers from the strategy, the checkpoints' folder
as an argument, paths by pathlib, the optimizer is built within the scope, and what is saved is counted up, so
that a loop that goes on has steps to do."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

checkpoint_dir = str(Path(sys.argv[1]) / "ckpt")
per_worker_batch_size = 8
num_epochs = int(sys.argv[2])
num_steps_per_epoch = 5


def dataset_fn(global_batch_size: Any, input_context: Any) -> Any:
    batch_size = input_context.get_per_replica_batch_size(global_batch_size)
    rng = np.random.default_rng(0)
    x_train = rng.normal(size=(160, 12)).astype("float32")
    y_train = rng.integers(0, 10, size=160)
    dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(160, seed=1).repeat()
    dataset = dataset.shard(input_context.num_input_pipelines, input_context.input_pipeline_id)
    print("pipeline", input_context.input_pipeline_id, "of", input_context.num_input_pipelines)
    return dataset.batch(batch_size)


def build_model() -> Any:
    regularizer = tf.keras.regularizers.L2(1e-4)
    return tf.keras.Sequential(
        [
            tf.keras.Input(shape=(12,)),
            tf.keras.layers.Dense(32, activation="relu", kernel_regularizer=regularizer),
            tf.keras.layers.Dense(10, kernel_regularizer=regularizer),
        ]
    )


def _is_chief(task_type: Any, task_id: Any, cluster_spec: Any) -> bool:
    return (
        task_type is None
        or task_type == "chief"
        or (task_type == "worker" and task_id == 0 and "chief" not in cluster_spec.as_dict())
    )


def _get_temp_dir(dirpath: Any, task_id: Any) -> str:
    base_dirpath = "workertemp_" + str(task_id)
    temp_dir = str(Path(dirpath) / base_dirpath)
    tf.io.gfile.makedirs(temp_dir)
    return temp_dir


def write_filepath(filepath: Any, task_type: Any, task_id: Any, cluster_spec: Any) -> str:
    dirpath = str(Path(filepath).parent)
    base = Path(filepath).name
    if not _is_chief(task_type, task_id, cluster_spec):
        dirpath = _get_temp_dir(dirpath, task_id)
    return str(Path(dirpath) / base)


# This must come before all else
options = tf.distribute.experimental.CommunicationOptions(
    implementation=tf.distribute.experimental.CommunicationImplementation.RING
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
num_workers = strategy.num_replicas_in_sync
global_batch_size = per_worker_batch_size * num_workers

with strategy.scope():
    multi_worker_model = build_model()
    multi_worker_dataset = strategy.distribute_datasets_from_function(
        lambda input_context: dataset_fn(global_batch_size, input_context)
    )
    optimizer = tf.keras.optimizers.RMSprop(learning_rate=0.001)
    optimizer.build(multi_worker_model.trainable_variables)
    train_accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="train_accuracy")


@tf.function  # type: ignore[untyped-decorator]
def train_step(iterator: Any) -> Any:
    """Training step function."""

    def step_fn(inputs: Any) -> Any:
        """Per-Replica step function."""
        x, y = inputs
        with tf.GradientTape() as tape:
            predictions = multi_worker_model(x, training=True)
            per_example_loss = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction="none"
            )(y, predictions)
            loss = tf.nn.compute_average_loss(per_example_loss)
            model_losses = multi_worker_model.losses
            if model_losses:
                loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
        grads = tape.gradient(loss, multi_worker_model.trainable_variables)
        optimizer.apply_gradients(zip(grads, multi_worker_model.trainable_variables, strict=True))
        train_accuracy.update_state(y, predictions)
        return loss

    per_replica_losses = strategy.run(step_fn, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, per_replica_losses, axis=None)


epoch = tf.Variable(initial_value=tf.constant(0, dtype=tf.dtypes.int64), name="epoch")
step_in_epoch = tf.Variable(initial_value=tf.constant(0, dtype=tf.dtypes.int64), name="step_in_epoch")

task_type, task_id, cluster_spec = (
    strategy.cluster_resolver.task_type,
    strategy.cluster_resolver.task_id,
    strategy.cluster_resolver.cluster_spec(),
)
checkpoint = tf.train.Checkpoint(model=multi_worker_model, epoch=epoch, step_in_epoch=step_in_epoch)
write_checkpoint_dir = write_filepath(checkpoint_dir, task_type, task_id, cluster_spec)
checkpoint_manager = tf.train.CheckpointManager(checkpoint, directory=write_checkpoint_dir, max_to_keep=1)

# Restoring the checkpoint
latest_checkpoint = tf.train.latest_checkpoint(checkpoint_dir)
if latest_checkpoint:
    checkpoint.restore(latest_checkpoint)
    print("restored epoch", int(epoch))

while epoch.numpy() < num_epochs:
    iterator = iter(multi_worker_dataset)
    total_loss, num_batches = 0.0, 0
    while step_in_epoch.numpy() < num_steps_per_epoch:
        total_loss += train_step(iterator)
        num_batches += 1
        step_in_epoch.assign_add(1)
    train_loss = total_loss / num_batches
    print(f"Epoch: {epoch.numpy()}, accuracy: {train_accuracy.result():.6f}, train_loss: {train_loss:.6f}.")
    train_accuracy.reset_state()
    # Once the `CheckpointManager` is set up, you're now ready to save, and remove the checkpoints
    # non-chief workers saved.
    epoch.assign_add(1)
    step_in_epoch.assign(0)
    checkpoint_manager.save()
    if not _is_chief(task_type, task_id, cluster_spec):
        tf.io.gfile.rmtree(write_checkpoint_dir)

print("sum of weights", sum(float(tf.reduce_sum(weight)) for weight in multi_worker_model.weights))
