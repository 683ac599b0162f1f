"""Documents made to break whoever reads them: too deep, too wide, too long, or meaning more than they say.

Each parser reads them in a process of its own, so that a crash (a signal) and work without end are failed tests.
"""
