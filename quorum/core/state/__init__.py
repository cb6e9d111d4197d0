"""Everything one replica holds: one class per role, and the parts that the roles share."""
