"""Who may: topics, exposures, subscriptions, approvals; the pure rules over them; the store that keeps every version.

Rules do no I/O. The store is SQLAlchemy Core and knows nothing of HTTP. May import `filters`, `log.position`, `errors`.
"""
