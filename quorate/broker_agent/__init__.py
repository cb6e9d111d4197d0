"""The broker's side of the cluster: commands from the metadata log, registration, heartbeats."""
