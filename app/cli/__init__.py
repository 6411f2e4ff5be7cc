"""The command line: one module per subcommand. Nothing here imports Qt or TensorFlow."""
