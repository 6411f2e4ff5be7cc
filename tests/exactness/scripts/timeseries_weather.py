"""Forecasts a temperature by an LSTM over windows of several sensors."""

import keras
import numpy as np

keras.utils.set_random_seed(17)
features = np.cumsum(np.random.normal(size=(1200, 4)), axis=0)
features = ((features - features.mean(axis=0)) / features.std(axis=0)).astype("float32")
x, y = features[:-24], features[24:, 0]
dataset_train = keras.utils.timeseries_dataset_from_array(
    x[:800], y[:800], sequence_length=12, sampling_rate=2, batch_size=64
)
dataset_val = keras.utils.timeseries_dataset_from_array(
    x[800:], y[800:], sequence_length=12, sampling_rate=2, batch_size=64
)
for batch in dataset_train.take(1):
    inputs, targets = batch
inputs = keras.layers.Input(shape=(inputs.shape[1], inputs.shape[2]))
lstm_out = keras.layers.LSTM(16)(inputs)
model = keras.Model(inputs=inputs, outputs=keras.layers.Dense(1)(lstm_out))
model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.001), loss="mse")
path_checkpoint = "model_checkpoint.weights.h5"
history = model.fit(
    dataset_train,
    epochs=2,
    validation_data=dataset_val,
    callbacks=[
        keras.callbacks.EarlyStopping(monitor="val_loss", min_delta=0, patience=5),
        keras.callbacks.ModelCheckpoint(
            monitor="val_loss", filepath=path_checkpoint, save_weights_only=True, save_best_only=True
        ),
    ],
    verbose=0,
)
for x, y in dataset_val.take(2):
    forecast = model.predict(x, verbose=0)
