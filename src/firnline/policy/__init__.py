"""What to keep, and why: rules, the formats' own retention, inheritance and the pure function `decide`."""
