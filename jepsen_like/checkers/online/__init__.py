"""Checkers that look at a history while it is written: lines in, what is certain out.

A model is here if a bounded memory is enough for it: logs, and registers whose values are written
once. All others need the whole history, and are refused by name. What is told is never taken back.
"""
