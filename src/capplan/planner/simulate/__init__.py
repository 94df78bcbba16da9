"""One layout or network, request by request."""
