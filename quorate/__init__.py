"""The front package: configuration, composition, services, client and command line."""

__version__ = "0.1.0"
