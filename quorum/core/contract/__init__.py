"""What the runtime sees of the core: outputs, events, local events, and the error codes."""
