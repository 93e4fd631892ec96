"""Consumer groups have members, a generation and committed offsets, which a coordinator keeps."""
