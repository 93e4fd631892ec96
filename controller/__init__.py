"""Rules over the metadata: what a controller decides, and the image that all nodes share."""
