"""From `next_epoch` to a batch: reading ahead, delivery, place, saved state, worker processes."""
