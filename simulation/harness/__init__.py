"""One node of any test: the production core or replica, with substitutes for its ports."""
