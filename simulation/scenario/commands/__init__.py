"""The commands of scenarios, one file each."""
