"""Measurements that print a table; not part of the package."""
