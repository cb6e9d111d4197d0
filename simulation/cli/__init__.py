"""``quorate sim``: the simulator as commands."""
