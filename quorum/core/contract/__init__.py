"""The interface of the core for the runtime: outputs, events and local events."""
