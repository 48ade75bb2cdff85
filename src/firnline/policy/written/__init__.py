"""The file as a whole: which of its entries count for a table, and its schema for editors."""
