"""Looks at a machine and a data folder and says what is wrong and what to do. Changes nothing; only the command line imports it."""
