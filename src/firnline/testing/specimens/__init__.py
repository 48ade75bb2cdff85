"""Tables that contracts are tried on, and what is done to them."""
