"""What is looked at rather than read: the graph of a table, the report in one file, the page."""
