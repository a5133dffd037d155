"""Who talks to whom, and what a training run leaves behind."""
