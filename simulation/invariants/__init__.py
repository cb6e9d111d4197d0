"""One file per property that must hold after every step of a simulated cluster."""
