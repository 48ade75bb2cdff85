"""What tests, benchmarks and the demo stand on: servers, worlds and their judges, writers of large tables."""
