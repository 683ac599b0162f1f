"""Feeds: pages of a topic or a lane, read from cursors. Layouts of partitions, pages and lines are pure; no HTTP here."""
