"""What every conversation has in common: changes of role, epoch claims, refusals, responses."""
