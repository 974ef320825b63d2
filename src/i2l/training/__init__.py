"""Training: a dataset and a config in, a run folder with checkpoints and curves out."""
