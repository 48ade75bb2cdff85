"""Real Paimon tables, and judges of them that share no code with firnline.

Tables are written by pypaimon, in an environment of its own, and by Paimon's Java API, in a JVM of its own.
"""
