"""`python -m tidings.cli`: how the supervisor starts its parts."""

from tidings.cli import main

main()
