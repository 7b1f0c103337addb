"""What happens between `next_epoch` and a batch: reading ahead, hand-over, place, saved state, worker processes."""
