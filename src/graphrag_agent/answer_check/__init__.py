"""Checks an answer against what it cites: numbers, dates, units, negations, names, exceptions and words."""
