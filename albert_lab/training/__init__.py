"""Pre-training: optimizers, schedule, clocks, checkpoints, the loop, and intrinsic evaluation."""
