"""Foundations that know nothing of Tandem: tasks, timers, threads, logs."""
