"""Who hears of runs, as it is configured."""
