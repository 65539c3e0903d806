"""The one door for configuration."""
