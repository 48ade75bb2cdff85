"""Contracts that an adapter subclasses, and Hypothesis strategies; the extra `testing` brings what they need."""
