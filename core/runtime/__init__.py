"""What the rest stands on and that knows nothing of Tandem: tasks, timers, threads, logs."""
