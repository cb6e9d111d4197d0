"""Bootstrap voter lists, pre-votes and votes."""
