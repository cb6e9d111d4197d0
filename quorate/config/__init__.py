"""What one server is told: settings, their sections, and where values come from."""
