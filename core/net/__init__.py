"""TLS, ports and addresses."""
