"""From text to masked batches; does not depend on models."""
