"""The native door: everything the hub can do, as JSON over HTTP under `/api`, with health and metrics beside it.

FastAPI stays inside this package. One file per resource: its wire shapes, their translation, its routes.
"""
