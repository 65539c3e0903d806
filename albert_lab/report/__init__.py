"""Reports: tables, statistics and verdicts as Markdown and as a page."""
