"""From a study to its analysis: estimates, tests and verdicts as values, without text."""
