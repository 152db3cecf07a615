"""Readers of a user's own data."""
