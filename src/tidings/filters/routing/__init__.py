"""What `tidings.filters.router` is made of: filters as terms, events as columns, and one index that joins them in numpy.

Reading order: terms (a filter as alternatives of tests), columns (events decoded to the paths that filters name), codes and
cuts (values to small numbers), layout (which access a term gets), index (candidates, then tests), group (routes of like topics).
"""
