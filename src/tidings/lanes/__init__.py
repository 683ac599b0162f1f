"""Lanes as logs of their own: numbered entries with everything that is needed to send them.

Delivery reads them through the port; how an adapter joins blocks, bodies and the log's entries is its own business.
"""
