"""Every layer of Keras, each between its own weights, in which its faults show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from tests.exactness.keras_names import LAYERS, classed
from tests.exactness.scenarios.registry import BATCH, FEATURES, Outcome, scenario, table

Branch = Callable[[Any], Any]
"""Adds a layer after a tensor."""
ROWS = 4 * BATCH + 20
"""The last batch is smaller."""
IDS = 9


def spread(x: np.ndarray, *shape: int) -> Any:
    """Numbers of a given shape per row, computed from its features."""
    places = np.random.RandomState(2).normal(size=(FEATURES, int(np.prod(shape))))
    return np.sin(x @ places).reshape(-1, *shape).astype("float32")


def ids(x: np.ndarray) -> Any:
    return (1 + np.abs(spread(x, 6) * 50).astype("int32") % IDS).astype("int32")


def words(x: np.ndarray) -> np.ndarray:
    return np.array([" ".join(f"w{number}" for number in row) for row in ids(x)])[:, None]


def drawn_images(*names: str) -> Mapping[str, Branch]:
    return {name: getattr(layers, name)(**_DRAWN_IMAGES[name]) for name in names}


class Inside(layers.Layer):
    """Calls a layer that accepts no symbolic tensor."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def call(self, x: Any) -> Any:
        return self.inner(x)


def two(layer: Any, *arguments: Any) -> Branch:
    """For a layer that merges its input with a Dense of it."""
    return lambda seen: layer(*arguments)([seen, layers.Dense(seen.shape[-1])(seen)])


def attended(layer: Any, **arguments: Any) -> Branch:
    return lambda seen: layer(**arguments)([seen, layers.Dense(seen.shape[-1])(seen)])


def with_itself(layer: Any, **arguments: Any) -> Branch:
    return lambda seen: layer(**arguments)(seen, seen)


def vectors() -> Mapping[str, Branch]:
    return {
        "Dense": lambda seen: layers.Dense(3, kernel_constraint="max_norm", bias_regularizer="l2")(seen),
        "EinsumDense": lambda seen: layers.EinsumDense("ab,bc->ac", output_shape=3, bias_axes="c")(seen),
        "Activation": layers.Activation("gelu"),
        "ActivityRegularization": layers.ActivityRegularization(l1=0.01, l2=0.01),
        "ELU": layers.ELU(),
        "LeakyReLU": layers.LeakyReLU(),
        "PReLU": lambda seen: layers.PReLU()(seen),
        "ReLU": layers.ReLU(max_value=0.8),
        "Softmax": layers.Softmax(),
        "Add": two(layers.Add),
        "Average": two(layers.Average),
        "Concatenate": two(layers.Concatenate),
        "Dot": two(layers.Dot, -1),
        "Maximum": two(layers.Maximum),
        "Minimum": two(layers.Minimum),
        "Multiply": two(layers.Multiply),
        "Subtract": two(layers.Subtract),
        "Flatten": layers.Flatten(),
        "Identity": layers.Identity(),
        "Lambda": lambda seen: layers.Lambda(lambda x: x * x)(seen),
        "Masking": layers.Masking(0.5),
        "Permute": lambda seen: layers.Permute((2, 1))(layers.Reshape((2, 4))(seen)),
        "RepeatVector": layers.RepeatVector(3),
        "Rescaling": layers.Rescaling(0.5, 0.1),
        "Reshape": layers.Reshape((4, 2)),
        "LayerNormalization": lambda seen: layers.LayerNormalization()(seen),
        "GroupNormalization": lambda seen: layers.GroupNormalization(2)(seen),
        "RMSNormalization": lambda seen: layers.RMSNormalization()(seen),
        "UnitNormalization": layers.UnitNormalization(),
        "SpectralNormalization": lambda seen: layers.SpectralNormalization(layers.Dense(3))(seen),
        "Discretization": lambda seen: layers.Discretization([-0.5, 0.0, 0.5])(seen),
    }


def sequences() -> Mapping[str, Branch]:
    return {
        "LSTM": lambda seen: layers.LSTM(3, return_sequences=True)(seen),
        "GRU": lambda seen: layers.GRU(3, recurrent_regularizer="l2")(seen),
        "SimpleRNN": lambda seen: layers.SimpleRNN(3, go_backwards=True)(seen),
        "RNN": lambda seen: layers.RNN(layers.SimpleRNNCell(2))(seen),
        "LSTMCell": lambda seen: layers.RNN(layers.LSTMCell(2))(seen),
        "GRUCell": lambda seen: layers.RNN(layers.GRUCell(2))(seen),
        "SimpleRNNCell": lambda seen: layers.RNN(layers.SimpleRNNCell(3))(seen),
        "StackedRNNCells": lambda seen: layers.RNN(
            layers.StackedRNNCells([layers.GRUCell(2), layers.LSTMCell(2)])
        )(seen),
        "Bidirectional": lambda seen: layers.Bidirectional(layers.GRU(2))(seen),
        "TimeDistributed": lambda seen: layers.TimeDistributed(layers.Dense(2))(seen),
        "Conv1D": lambda seen: layers.Conv1D(3, 3, dilation_rate=2)(seen),
        "Conv1DTranspose": lambda seen: layers.Conv1DTranspose(2, 3, strides=2)(seen),
        "DepthwiseConv1D": lambda seen: layers.DepthwiseConv1D(3)(seen),
        "SeparableConv1D": lambda seen: layers.SeparableConv1D(2, 3)(seen),
        "Attention": attended(layers.Attention, use_scale=True),
        "AdditiveAttention": attended(layers.AdditiveAttention),
        "MultiHeadAttention": with_itself(layers.MultiHeadAttention, num_heads=2, key_dim=2),
        "GroupQueryAttention": with_itself(
            layers.GroupQueryAttention, head_dim=2, num_query_heads=2, num_key_value_heads=1
        ),
        "AveragePooling1D": layers.AveragePooling1D(2),
        "MaxPooling1D": layers.MaxPooling1D(2),
        "AdaptiveAveragePooling1D": layers.AdaptiveAveragePooling1D(2),
        "AdaptiveMaxPooling1D": layers.AdaptiveMaxPooling1D(2),
        "GlobalAveragePooling1D": layers.GlobalAveragePooling1D(),
        "GlobalMaxPooling1D": layers.GlobalMaxPooling1D(),
        "Cropping1D": layers.Cropping1D(1),
        "UpSampling1D": layers.UpSampling1D(2),
        "ZeroPadding1D": layers.ZeroPadding1D(1),
    }


def images() -> Mapping[str, Branch]:
    return {
        "Conv2D": lambda seen: layers.Conv2D(2, 3)(seen),
        "Conv2DTranspose": lambda seen: layers.Conv2DTranspose(2, 3)(seen),
        "DepthwiseConv2D": lambda seen: layers.DepthwiseConv2D(3)(seen),
        "SeparableConv2D": lambda seen: layers.SeparableConv2D(2, 3)(seen),
        "AveragePooling2D": layers.AveragePooling2D(2),
        "MaxPooling2D": layers.MaxPooling2D(2),
        "AdaptiveAveragePooling2D": layers.AdaptiveAveragePooling2D(2),
        "AdaptiveMaxPooling2D": layers.AdaptiveMaxPooling2D(2),
        "GlobalAveragePooling2D": layers.GlobalAveragePooling2D(),
        "GlobalMaxPooling2D": layers.GlobalMaxPooling2D(),
        "Cropping2D": layers.Cropping2D(1),
        "UpSampling2D": layers.UpSampling2D(2, interpolation="bilinear"),
        "ZeroPadding2D": layers.ZeroPadding2D(1),
        "CenterCrop": layers.CenterCrop(4, 4),
        "Resizing": layers.Resizing(5, 5),
        "AutoContrast": layers.AutoContrast((0, 1)),
        "ContrastLimitedAdaptiveHistogramEqualization": layers.ContrastLimitedAdaptiveHistogramEqualization(
            (0, 1), tile_grid_size=(2, 2)
        ),
        "ConvLSTM1D": lambda seen: layers.ConvLSTM1D(2, 3)(seen),
        "Pipeline": layers.Pipeline([layers.Rescaling(0.5), layers.CenterCrop(4, 4)]),
    }


def volumes() -> Mapping[str, Branch]:
    return {
        "Conv3D": lambda seen: layers.Conv3D(2, 2)(seen),
        "Conv3DTranspose": lambda seen: layers.Conv3DTranspose(1, 2)(seen),
        "AveragePooling3D": layers.AveragePooling3D(2),
        "MaxPooling3D": layers.MaxPooling3D(2),
        "AdaptiveAveragePooling3D": layers.AdaptiveAveragePooling3D(2),
        "AdaptiveMaxPooling3D": layers.AdaptiveMaxPooling3D(2),
        "GlobalAveragePooling3D": layers.GlobalAveragePooling3D(),
        "GlobalMaxPooling3D": layers.GlobalMaxPooling3D(),
        "Cropping3D": layers.Cropping3D(1),
        "UpSampling3D": layers.UpSampling3D(2),
        "ZeroPadding3D": layers.ZeroPadding3D(1),
        "ConvLSTM2D": lambda seen: layers.ConvLSTM2D(1, 2)(seen),
        "ConvLSTM3D": lambda seen: layers.ConvLSTM3D(1, 2)(layers.Reshape((2, 2, 4, 4, 2))(seen)),
    }


def text() -> Mapping[str, Branch]:
    return {
        "Embedding": lambda seen: layers.Embedding(IDS + 1, 3, mask_zero=True)(seen),
        "ReversibleEmbedding": lambda seen: layers.ReversibleEmbedding(IDS + 1, 3)(seen),
        "CategoryEncoding": layers.CategoryEncoding(IDS + 1, "count"),
        "Hashing": layers.Hashing(4),
        "IntegerLookup": layers.IntegerLookup(vocabulary=[2, 3, 5], output_mode="multi_hot"),
        "HashedCrossing": lambda seen: layers.HashedCrossing(5)((seen[:, 0], seen[:, 1])),
    }


def strings() -> Mapping[str, Branch]:
    return {
        "TextVectorization": lambda seen: layers.TextVectorization(
            vocabulary=["w1", "w2", "w3"], output_mode="tf_idf", idf_weights=[1.0, 2.0, 3.0]
        )(seen),
        "StringLookup": layers.StringLookup(vocabulary=["w1 w2", "w2"], output_mode="multi_hot"),
    }


def sound() -> Mapping[str, Branch]:
    return {
        "STFTSpectrogram": lambda seen: layers.STFTSpectrogram(
            frame_length=8, frame_step=4, fft_length=8, window=None, trainable=True
        )(layers.Reshape((-1, 1))(seen)),
        "MelSpectrogram": lambda seen: layers.Rescaling(1e-3)(
            layers.MelSpectrogram(
                window=None,
                fft_length=16,
                sequence_stride=8,
                sampling_rate=200,
                num_mel_bins=4,
                min_freq=1.0,
                power_to_db=False,
            )(seen)
        ),
    }


def drawn_vectors() -> Mapping[str, Branch]:
    return {
        "Dropout": layers.Dropout(0.3),
        "AlphaDropout": layers.AlphaDropout(0.3),
        "GaussianDropout": layers.GaussianDropout(0.3),
        "GaussianNoise": layers.GaussianNoise(0.3),
        "SpatialDropout1D": lambda seen: layers.SpatialDropout1D(0.3)(layers.Reshape((4, 2))(seen)),
        "SpatialDropout2D": lambda seen: layers.SpatialDropout2D(0.3)(layers.Reshape((2, 2, 2))(seen)),
        "SpatialDropout3D": lambda seen: layers.SpatialDropout3D(0.3)(layers.Reshape((2, 2, 1, 2))(seen)),
    }


_RANGE = {"value_range": (0, 1)}
_DRAWN_IMAGES: Mapping[str, dict[str, Any]] = {
    "AugMix": _RANGE,
    "CutMix": {},
    "MixUp": {},
    "RandAugment": _RANGE,
    "RandomBrightness": {"factor": 0.3, **_RANGE},
    "RandomColorDegeneration": {"factor": 0.3, **_RANGE},
    "RandomColorJitter": {"brightness_factor": 0.3, **_RANGE},
    "RandomContrast": {"factor": 0.3, **_RANGE},
    "RandomCrop": {"height": 8, "width": 8},
    "RandomElasticTransform": _RANGE,
    "RandomErasing": _RANGE,
    "RandomFlip": {},
    "RandomGaussianBlur": {"kernel_size": 3, "sigma": 1.0, **_RANGE},
    "RandomGrayscale": {},
    "RandomHue": {"factor": 0.3, **_RANGE},
    "RandomInvert": _RANGE,
    "RandomPerspective": {},
    "RandomPosterization": {"factor": 4, **_RANGE},
    "RandomRotation": {"factor": 0.2},
    "RandomSaturation": {"factor": 0.3, **_RANGE},
    "RandomSharpness": {"factor": 0.3, **_RANGE},
    "RandomShear": {"x_factor": 0.2},
    "RandomTranslation": {"height_factor": 0.2, "width_factor": 0.2},
    "RandomZoom": {"height_factor": 0.2},
    "Solarization": {"threshold_factor": 0.5, **_RANGE},
}


def trained_with(branches: Mapping[str, Branch], x: np.ndarray, *, learns_before: bool = True) -> Outcome:
    """A model with a branch for each layer, with weights before it (unless its input is not numeric) and
    after it."""
    y = table(ROWS)[1]
    inputs = keras.Input(x.shape[1:], dtype="string" if x.dtype.kind == "U" else x.dtype.name)
    outputs = []
    for name, branch in branches.items():
        seen: Any = (
            layers.Dense(x.shape[-1], "sigmoid", name=f"before_{name}")(inputs) if learns_before else inputs
        )
        seen = ops.cast(branch(seen), "float32")
        outputs.append(layers.Dense(1, name=f"of_{name}")(layers.Flatten()(seen)))
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.SGD(0.002), loss="mse")
    data = tf.data.Dataset.from_tensor_slices((x, (y,) * len(outputs))).batch(BATCH)
    history = model.fit(data, verbose=0, validation_data=data.take(2))
    return Outcome([model], {**history.history, "checked/layers": np.array(list(branches))})


def joined(*outcomes: Outcome) -> Outcome:
    checked = np.concatenate([each.values["checked/layers"] for each in outcomes])
    return Outcome([model for each in outcomes for model in each.models], {"checked/layers": checked})


def features() -> np.ndarray:
    return table(ROWS)[0]


@scenario(once=True)
def keras_layers_of_vectors(folder: Path) -> Outcome:
    return trained_with(vectors(), features())


@scenario(once=True)
def keras_layers_of_sequences(folder: Path) -> Outcome:
    return trained_with(sequences(), spread(features(), 6, 4))


@scenario(once=True)
def keras_layers_of_images(folder: Path) -> Outcome:
    return trained_with(images(), spread(features(), 8, 8, 3))


@scenario(once=True, told="computes each batch whole")
def keras_layers_of_whole_batches(folder: Path) -> Outcome:
    """One histogram for all images."""
    equal = {"Equalization": Inside(layers.Equalization((0, 1), bins=8))}
    return trained_with(equal, spread(features(), 8, 8, 3))


@scenario(once=True)
def keras_layers_of_volumes(folder: Path) -> Outcome:
    return trained_with(volumes(), spread(features(), 4, 4, 4, 2))


@scenario(once=True)
def keras_layers_of_text(folder: Path) -> Outcome:
    return joined(
        trained_with(text(), ids(features()), learns_before=False),
        trained_with(strings(), words(features()), learns_before=False),
        trained_with(sound(), spread(features(), 64), learns_before=False),
    )


@scenario(once=True)
def keras_layers_with_a_state(folder: Path) -> Outcome:
    """Adapting is not part of a step."""
    x = features()
    scaled = layers.Normalization()
    scaled.adapt(x)
    of_all = {
        "Normalization": scaled,
        "BatchNormalization": lambda seen: layers.BatchNormalization()(seen),
    }
    return trained_with(of_all, x, learns_before=False)


@scenario(once=True)
def keras_layers_that_draw(folder: Path) -> Outcome:
    drawn = drawn_images(*(name for name in _DRAWN_IMAGES if LAYERS[name] == "exact"))
    return joined(trained_with(drawn_vectors(), features()), trained_with(drawn, spread(features(), 8, 8, 3)))


@scenario(once=True, exact=False, told="each laptop draws its own random numbers", differs=True)
def keras_layers_that_draw_apart(folder: Path) -> Outcome:
    return trained_with(drawn_images(*classed(LAYERS, "random")), spread(features(), 8, 8, 3))


@scenario(once=True)
def keras_layer_from_a_saved_model(folder: Path) -> Outcome:
    inner = keras.Sequential([keras.Input((FEATURES,)), layers.Dense(3, "tanh")])
    inner.export(folder / "inner", verbose=False)
    return trained_with({"TFSMLayer": layers.TFSMLayer(folder / "inner", call_endpoint="serve")}, features())
