"""One screen per file: each renders the state and emits intents; it holds only widget-local state."""
