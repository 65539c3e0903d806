"""Launchers start the processes that train runs: one module per option of conf/launcher/."""
