"""The same models trained by a hand-written tf.distribute loop and by Keras' fit through Tandem's engine."""
