"""What units expand to, remembered between runs; and a budget of requests that processes share."""
