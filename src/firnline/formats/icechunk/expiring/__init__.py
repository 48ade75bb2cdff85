"""What an expiry makes of a repository's history, told beforehand: pure functions, which change no repository."""
