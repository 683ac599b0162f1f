"""Run by the environment of the foreign package `zeroeventhub`, not by ours: these files import nothing of Tidings."""
