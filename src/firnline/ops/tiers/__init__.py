"""Handing history to a tier: what is handed over, the copies, the table that they make, and the proof that all is
there.
"""
