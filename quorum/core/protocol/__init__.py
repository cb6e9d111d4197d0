"""What all conversations share: role transitions, epoch claims, refusals and responses."""
