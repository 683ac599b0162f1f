"""What `tidings.filters.router` is made of: filters as terms, events as columns or rows, and one layout with two executions.

Reading order: terms (a filter as alternatives of tests), columns and decoding (events decoded to the paths that filters name),
codes (values to small numbers), layout (which access a term gets), facts and verdicts (what texts decide), index and rows
(batches: candidates, then tests, in numpy), filing, leaf, written and single (one event: a generated function; few: without
one), compiled (both, made when used), group (routes of like topics, and changes of them), order (what was found, sorted).
"""
