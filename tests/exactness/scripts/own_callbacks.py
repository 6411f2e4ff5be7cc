"""Stops at the least loss, lowers its rate on a plateau, and keeps a log."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(40)
x = np.random.normal(size=(640, 8)).astype("float32")
y = np.sin(x[:, :1]).astype("float32")


class EarlyStoppingAtMinLoss(keras.callbacks.Callback):
    def __init__(self, patience=0):
        super().__init__()
        self.patience = patience
        self.best_weights = None

    def on_train_begin(self, logs=None):
        self.wait = 0
        self.stopped_epoch = 0
        self.best = np.inf

    def on_epoch_end(self, epoch, logs=None):
        current = logs.get("loss")
        if np.less(current, self.best):
            self.best = current
            self.wait = 0
            self.best_weights = self.model.get_weights()
        else:
            self.wait += 1
            if self.wait >= self.patience:
                self.stopped_epoch = epoch
                self.model.stop_training = True
                self.model.set_weights(self.best_weights)


class LossAndErrorPrintingCallback(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):
        self.seen.append(logs["loss"])

    def on_epoch_end(self, epoch, logs=None):
        print(f"The average loss for epoch {epoch} is {logs['loss']:7.2f}")


def lr_schedule(epoch, lr):
    return {3: 0.005, 4: 0.002}.get(epoch, lr)


model = keras.Sequential([keras.Input((8,)), layers.Dense(16, "tanh"), layers.Dense(1)])
model.compile(
    optimizer=keras.optimizers.RMSprop(learning_rate=0.01), loss="mean_squared_error", metrics=["mae"]
)
printing = LossAndErrorPrintingCallback()
history = model.fit(
    x,
    y,
    batch_size=64,
    epochs=5,
    validation_split=0.2,
    verbose=0,
    callbacks=[
        printing,
        EarlyStoppingAtMinLoss(patience=2),
        keras.callbacks.LearningRateScheduler(lr_schedule),
        keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.2, patience=1),
        keras.callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True),
        keras.callbacks.CSVLogger("log.csv"),
    ],
)
seen = np.array(printing.seen)
