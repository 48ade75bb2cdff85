"""What a person looks at in a browser: read models, their HTML, a report in one file, and the page that serves them."""
