"""A small client of the hub's HTTP API, for the command line and for programs. Imports nothing of the hub but its errors.

Standard library only, so that a command starts quickly.
"""
