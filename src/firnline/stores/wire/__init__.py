"""Requests to S3 that are signed and sent without the whole way that botocore takes from a call to a request."""
