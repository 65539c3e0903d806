"""Trackers, which show the metrics of runs elsewhere: one module each, named as in machine.report_to."""
