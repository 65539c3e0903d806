"""From text to masked batches; knows nothing of models."""
