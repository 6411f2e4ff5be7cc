"""How members compute each loss, metric, optimizer and layer of Keras. pytest's process imports none of them.

A name that a new release adds is in no table here, so `test_every_name_of_keras_is_classed` fails until it
is. A scenario of `scenarios/keras_*.py` trains with every name at (48, 16).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Class = Literal["exact", "gathered", "random", "whole", "told", "not trained"]
"""`exact`: as one process. `gathered`: exact, from all members' predictions. `whole`: exact and reported, as
every member computes each batch whole. `random`: members are equal but draw their own numbers; reported.
`told`: another value, reported. `not trained`: a base class, or no part of a step."""
Table = Mapping[str, Class]


def _all(kind: Class, *names: str) -> dict[str, Class]:
    return {name: kind for line in names for name in line.split()}


def classed(table: Table, *kinds: Class) -> list[str]:
    return [name for name, kind in table.items() if kind in kinds]


LOSSES: Table = {
    **_all(
        "exact",
        "MeanSquaredError MeanAbsoluteError MeanAbsolutePercentageError MeanSquaredLogarithmicError Huber",
        "LogCosh CosineSimilarity Poisson KLDivergence Hinge SquaredHinge CategoricalHinge",
        "BinaryCrossentropy BinaryFocalCrossentropy CategoricalCrossentropy CategoricalFocalCrossentropy",
        "CategoricalGeneralizedCrossEntropy SparseCategoricalCrossentropy CTC",
        "mean_squared_error mean_absolute_error mean_absolute_percentage_error huber log_cosh",
        "mean_squared_logarithmic_error cosine_similarity poisson kl_divergence hinge squared_hinge",
        "categorical_hinge binary_crossentropy binary_focal_crossentropy categorical_crossentropy",
        "categorical_focal_crossentropy categorical_generalized_cross_entropy",
        "sparse_categorical_crossentropy ctc",
    ),
    **_all("gathered", "Dice Tversky Circle dice tversky circle"),
    **_all("not trained", "Loss"),
}

METRICS: Table = {
    **_all(
        "exact",
        "AUC Accuracy BinaryAccuracy BinaryCrossentropy BinaryIoU CategoricalAccuracy",
        "CategoricalCrossentropy CategoricalHinge ConcordanceCorrelation CosineSimilarity F1Score FBetaScore",
        "FalseNegatives FalsePositives Hinge IoU KLDivergence LogCoshError Mean MeanAbsoluteError",
        "MeanAbsolutePercentageError MeanIoU MeanSquaredError MeanSquaredLogarithmicError OneHotIoU",
        "OneHotMeanIoU PearsonCorrelation Poisson Precision PrecisionAtRecall R2Score Recall",
        "RecallAtPrecision RootMeanSquaredError SensitivityAtSpecificity SparseCategoricalAccuracy",
        "SparseCategoricalCrossentropy SparseTopKCategoricalAccuracy SpecificityAtSensitivity SquaredHinge",
        "Sum TopKCategoricalAccuracy TrueNegatives TruePositives",
        "binary_accuracy binary_crossentropy binary_focal_crossentropy categorical_accuracy",
        "categorical_crossentropy categorical_focal_crossentropy categorical_hinge concordance_correlation",
        "hinge huber kl_divergence log_cosh mean_absolute_error",
        "mean_absolute_percentage_error mean_squared_error mean_squared_logarithmic_error",
        "pearson_correlation poisson sparse_categorical_accuracy sparse_categorical_crossentropy",
        "sparse_top_k_categorical_accuracy squared_hinge top_k_categorical_accuracy",
    ),
    **_all("not trained", "Metric MeanMetricWrapper"),
}

OPTIMIZERS: Table = {
    **_all(
        "exact",
        "SGD Adam AdamW Adamax Nadam Adadelta Adafactor Adagrad Ftrl Lamb Lion RMSprop Muon",
        "ScheduleFreeAdamW LossScaleOptimizer MultiOptimizer OptimizerMap",
    ),
    **_all("not trained", "Optimizer"),
}

SCHEDULES: Table = {
    **_all(
        "exact",
        "CosineDecay CosineDecayRestarts ExponentialDecay InverseTimeDecay PiecewiseConstantDecay",
        "PolynomialDecay",
    ),
    **_all("not trained", "LearningRateSchedule"),
}

LAYERS: Table = {
    **_all(
        "exact",
        "Activation ActivityRegularization AdaptiveAveragePooling1D AdaptiveAveragePooling2D",
        "AdaptiveAveragePooling3D AdaptiveMaxPooling1D AdaptiveMaxPooling2D AdaptiveMaxPooling3D Add",
        "AdditiveAttention Attention AutoContrast Average AveragePooling1D AveragePooling2D AveragePooling3D",
        "Bidirectional CategoryEncoding CenterCrop Concatenate ContrastLimitedAdaptiveHistogramEqualization",
        "Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose ConvLSTM1D ConvLSTM2D",
        "ConvLSTM3D Cropping1D Cropping2D Cropping3D Dense DepthwiseConv1D DepthwiseConv2D Discretization",
        "Dot ELU EinsumDense Embedding Flatten GRU GRUCell GlobalAveragePooling1D",
        "GlobalAveragePooling2D GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D",
        "GlobalMaxPooling3D GroupNormalization GroupQueryAttention HashedCrossing Hashing Identity",
        "IntegerLookup LSTM LSTMCell Lambda LayerNormalization LeakyReLU Masking MaxPooling1D MaxPooling2D",
        "MaxPooling3D Maximum MelSpectrogram Minimum MultiHeadAttention Multiply Normalization PReLU Permute",
        "Pipeline RMSNormalization RNN ReLU RepeatVector Rescaling Reshape Resizing ReversibleEmbedding",
        "STFTSpectrogram SeparableConv1D SeparableConv2D SimpleRNN SimpleRNNCell Softmax",
        "SpectralNormalization StackedRNNCells StringLookup Subtract TFSMLayer TextVectorization",
        "TimeDistributed UnitNormalization UpSampling1D UpSampling2D UpSampling3D ZeroPadding1D",
        "ZeroPadding2D ZeroPadding3D",
    ),
    **_all(
        "exact",
        "AlphaDropout BatchNormalization Dropout GaussianDropout GaussianNoise RandomBrightness",
        "RandomColorDegeneration RandomColorJitter RandomContrast RandomCrop RandomErasing RandomFlip",
        "RandomGaussianBlur RandomGrayscale RandomHue RandomInvert RandomPerspective RandomPosterization",
        "RandomRotation RandomSaturation RandomSharpness RandomShear RandomTranslation RandomZoom",
        "Solarization SpatialDropout1D SpatialDropout2D SpatialDropout3D",
    ),
    **_all("random", "AugMix CutMix MixUp RandAugment RandomElasticTransform"),
    **_all("whole", "Equalization"),
    **_all("not trained", "InputLayer InputSpec Layer MaxNumBoundingBoxes Wrapper"),
    **_all("not trained", "FlaxLayer JaxLayer TorchModuleWrapper"),
}
