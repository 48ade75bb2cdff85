"""What a notebook shows of runs, checks, histories and answers: the same fields as in JSON."""
