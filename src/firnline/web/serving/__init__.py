"""The page: who may ask, what is kept for quick answers, what can be done, and the routes."""
