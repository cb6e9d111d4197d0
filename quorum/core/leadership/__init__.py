"""The leadership of an epoch: its beginning, duties, transfer and resignation."""
