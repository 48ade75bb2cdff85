"""The HTML of pages and reports: made from read models, with elements that escape whatever is not markup."""
