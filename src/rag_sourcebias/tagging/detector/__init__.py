"""Source and style detectors fitted to labelled documents (needs the extra ``detector``)."""
