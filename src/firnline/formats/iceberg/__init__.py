"""Apache Iceberg, format versions 1 to 3: metadata read as a document, manifests by the projection decoder."""
