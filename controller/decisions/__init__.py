"""One module a family of requests: `image, request -> changes, response`."""
