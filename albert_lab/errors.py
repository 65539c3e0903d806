"""The two mistakes that are the user's to mend, each with its own exit code."""


class ConfigError(ValueError):
    """What a user wrote in a command or a file cannot be used. The command line exits with code 2."""


class MissingDataError(RuntimeError):
    """Text, a package or a file that a command needs is not there. The command line exits with code 4."""


MENDABLE = (ConfigError, MissingDataError)
