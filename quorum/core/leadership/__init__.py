"""A leader's epoch: its beginning, its turn, its transfer and its resignation."""
