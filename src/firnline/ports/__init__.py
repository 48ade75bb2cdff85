"""What firnline asks of the outside world: one small Protocol per verb.

A signature says what a function may do. Planning code asks for `Get`, `Head` and `List`; only purge code ever
receives `Delete`, which lives in a module of its own so that the import linter can hold planning code to that.
"""
