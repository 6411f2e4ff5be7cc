"""What everybody speaks: the words of commands, events, messages and plans. Data, without I/O."""
