"""One node of any test: the production core or replica, and what is put in place of its ports."""
