"""The shared vocabulary: commands, events, messages and plans. Data, without I/O."""
