"""Runs with recoveries: consumers and programs of a log that loses history and says so."""
