"""Making a retriever indifferent to who wrote a text: projections, calibrated scores, search."""
